package inspect_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/recipes/lease"
)

// TestOf_hostile_data: any client may write any data to a contender's znode. It is a contender in any
// case, and its data are metadata only if all of them can be read.
func TestOf_hostile_data(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		data  string
		by    inspect.Library
		label bool
	}{
		"deep":                        {`{"docent":1,"data":` + strings.Repeat("[", 20_000), inspect.Curator, false},
		"deep and closed":             {`{"docent":1,"x":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + `}`, inspect.Docent, false},
		"a number that overflows":     {`{"docent":1,"pid":9223372036854775808}`, inspect.Curator, true},
		"a number without a bound":    {`{"docent":1e400}`, inspect.Curator, true},
		"a fraction":                  {`{"docent":1.5}`, inspect.Curator, true},
		"a version that is not there": {`{"docent":-1,"party":"p"}`, inspect.Curator, true},
		"a text for a number":         {`{"docent":"1"}`, inspect.Curator, true},
		"a year that is not there":    {`{"docent":1,"since":"99999-01-01T00:00:00Z"}`, inspect.Curator, true},
		"two documents":               {`{"docent":1}{"docent":1}`, inspect.Curator, true},
		"invalid UTF-8 in a name":     {"{\"docent\":1,\"owner\":\"\xff\xfe\"}", inspect.Docent, false},
		"invalid UTF-8":               {"\xff\xfe\x00", inspect.Curator, false},
		"a megabyte":                  {`{"docent":1,"owner":"` + strings.Repeat("x", 1<<20) + `"}`, inspect.Docent, false},
		"a megabyte without a shape":  {strings.Repeat("x", 1<<20), inspect.Curator, false},
		"a null":                      {"null", inspect.Curator, true},
		"a list":                      {`[{"docent":1}]`, inspect.Curator, true},
		"two versions":                {`{"docent":1,"docent":0}`, inspect.Curator, true},
		"a field in another case":     {`{"DOCENT":1}`, inspect.Curator, true}, // names are exact, as in Java
		"nothing":                     {"", inspect.Curator, false},
	} {
		l, ok := inspect.Of(dir("", znode{guid + "lock-0000000001", 1, 1, test.data}, znode{guid + "lock-0000000002", 2, 2, test.data}))
		if !ok || l.Kind != inspect.Mutex || len(l.Holders()) != 1 || len(l.Waiters()) != 1 {
			t.Fatalf("%s: %+v", name, l)
		}
		if c := l.Contenders[0]; c.By != test.by || (c.Label != "") != test.label || (c.Meta != nil) != (test.by == inspect.Docent) {
			t.Errorf("%s: by %s, label %.20q, metadata %v", name, c.By, c.Label, c.Meta != nil)
		}
		s := inspect.Snapshot{Locks: []inspect.Lock{l}}
		if found := inspect.Deadlocks(s, later(s)); len(found) != 0 {
			t.Errorf("%s: found %+v", name, found)
		}
	}
}

// TestOf_counters_at_their_end: the numbers of a directory that was never empty end, become negative and
// stay. Names with numbers that no server makes are no contenders'.
func TestOf_counters_at_their_end(t *testing.T) {
	t.Parallel()
	data := metadata(lease.Metadata{Party: "p"})
	l, _ := inspect.Of(dir("",
		znode{guid + "lock--2147483648", 1, 3, data}, znode{guid + "lock-2147483647", 2, 4, ""}, znode{guid + "lock-2147483646", 3, 1, ""},
		znode{guid + "lock-0000000005", 4, 5, ""}, znode{guid + "lock--2147483647", 5, 2, ""},
		znode{guid + "lock-2147483648", 6, 6, ""}, znode{guid + "lock-99999999999999999999", 6, 6, ""},
		znode{guid + "lock-+000000001", 6, 6, ""}, znode{guid + "lock-000000001", 6, 6, ""},
	))
	var order []int64
	for _, c := range l.Contenders {
		order = append(order, c.Sequence)
	}
	want := []int64{5, 2147483646, -2147483647, -2147483648, 2147483647} // the last three by their transactions
	if !slices.Equal(order, want) {
		t.Fatalf("order %v, want %v", order, want)
	}
	if len(l.Holders()) != 1 || l.Holders()[0].Sequence != 5 {
		t.Errorf("holders %+v", l.Holders())
	}
}
