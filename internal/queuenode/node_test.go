package queuenode_test

import (
	"slices"
	"testing"

	"github.com/docent-go/docent/internal/queuenode"
)

func TestSort(t *testing.T) {
	t.Parallel()
	const low, high = "_c_00000000-0000-4000-8000-000000000000-", "_c_ffffffff-ffff-4fff-bfff-ffffffffffff-"
	tests := map[string]struct {
		kinds []string
		names []string // in the order that is wanted
		left  []string // names of no contenders
	}{
		"the number decides, whatever stands before the kind": {
			kinds: []string{"lock-"},
			names: []string{high + "lock-0000000001", "lock-0000000002", low + "lock-0000000010"},
		},
		"both kinds stand in one order": {
			kinds: []string{"__WRIT__", "__READ__"},
			names: []string{high + "__READ__0000000001", low + "__WRIT__0000000002", low + "__READ__0000000003"},
		},
		"of one number the first kind comes first, listed in either order": {
			kinds: []string{"__WRIT__", "__READ__"},
			names: []string{
				high + "__WRIT__0000000001", low + "__READ__0000000001",
				low + "__WRIT__0000000002", high + "__READ__0000000002",
			},
		},
		"at the counter's end come negative numbers, behind all others (kazoo 730)": {
			kinds: []string{"lock-"},
			names: []string{"lock-0000000003", "lock-2147483646", "lock-2147483647", "lock--2147483648", "lock--2147483647"},
		},
		"a negative number is padded with its sign": {
			kinds: []string{"lock-"},
			names: []string{"lock-0000000000", "lock--2147483648", "lock--000000002", "lock--000000001"},
		},
		"whatever has no kind or no number is left out (kazoo 309)": {
			kinds: []string{"lock-"},
			names: []string{"lock-0000000001"},
			left: []string{
				"0", "content", "x-0000000000", "lock-", "lock-12", "lock-abc", "lock-+000000001", "lock-99999999999",
				"lock-0000000001x", "_c_x",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listed := append(slices.Clone(tt.left), tt.names...)
			slices.Reverse(listed)
			var got []string
			for i, node := range queuenode.Sort(listed, tt.kinds...) {
				got = append(got, node.Name)
				if queuenode.Index(queuenode.Sort(listed, tt.kinds...), node.Name) != i {
					t.Errorf("Index of %s is not %d", node.Name, i)
				}
			}
			if !slices.Equal(got, tt.names) {
				t.Errorf("sorted\n%q\nwant\n%q", got, tt.names)
			}
		})
	}
	if i := queuenode.Index(queuenode.Sort([]string{"lock-0000000001"}, "lock-"), "lock-0000000002"); i != -1 {
		t.Errorf("Index of a missing node: %d, want -1", i)
	}
}
