package queuenode_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/queuenode"
)

// FuzzSort gives a directory's children any names: those that are no contenders
// are left out, the others keep their order however they were listed.
func FuzzSort(f *testing.F) {
	f.Add("_c_00000000-0000-4000-8000-000000000000-lock-0000000001\nlock-0000000002\nlock--2147483648\nx")
	f.Add("__WRIT__0000000001\n__READ__0000000001\n__READ__99999999999\n__WRIT__-\n__READ__")
	f.Add("lock-lock-0000000001\nlock-+000000001\nlock-00000000001\nlock--000000001")
	kinds := []string{"__WRIT__", "__READ__", "lock-"}
	f.Fuzz(func(t *testing.T, listed string) {
		names := strings.Split(listed, "\n")
		nodes := queuenode.Sort(names, kinds...)
		for i, n := range nodes {
			if !slices.Contains(names, n.Name) || !slices.Contains(kinds, n.Kind) {
				t.Fatalf("%+v was not listed", n)
			}
			digits := n.Name[strings.LastIndex(n.Name, n.Kind)+len(n.Kind):]
			if want := fmt.Sprintf("%010d", n.Sequence); strings.TrimLeft(strings.TrimPrefix(digits, "-"), "0") != strings.TrimLeft(strings.TrimPrefix(want, "-"), "0") {
				t.Errorf("%q has the number %d", n.Name, n.Sequence)
			}
			if strings.HasPrefix(digits, "-") != (n.Sequence < 0) && n.Sequence != 0 {
				t.Errorf("%q has the number %d", n.Name, n.Sequence)
			}
			if at := queuenode.Index(nodes, n.Name); at < 0 || nodes[at].Name != n.Name || at > i {
				t.Errorf("%q is at %d, not %d", n.Name, at, i)
			}
		}
		for i := range nodes[min(1, len(nodes)):] {
			if uint32(nodes[i+1].Sequence) < uint32(nodes[i].Sequence) { // negative numbers come last
				t.Errorf("%q stands before %q", nodes[i].Name, nodes[i+1].Name)
			}
		}
		slices.Reverse(names)
		for i, n := range queuenode.Sort(names, kinds...) {
			if n.Name != nodes[i].Name {
				t.Errorf("listed the other way round %q comes at %d, where %q was", n.Name, i, nodes[i].Name)
			}
		}
	})
}
