package inspect_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/recipes/lease"
)

const (
	guid  = "_c_90aa3c2e-0e4c-4b1e-8c77-3a1f9d0b6a11-"
	hexID = "0123456789abcdef0123456789abcdef"
)

func TestOf(t *testing.T) {
	t.Parallel()
	docent := metadata(lease.Metadata{Host: "h", PID: 7})
	semaphore := func(leases, turns []znode) inspect.Znode {
		z := inspect.Znode{Path: "/l"}
		z.Children = append(z.Children, below("/l/leases", "", leases...), below("/l/locks", "", turns...))
		return z
	}
	for name, test := range map[string]struct {
		dir  inspect.Znode
		want string // "" for no lock
	}{
		"nothing":           {dir(""), ""},
		"other names":       {dir("", znode{name: "config"}, znode{name: "lock-12"}, znode{name: "xlock-"}), ""},
		"a group's members": {dir("", znode{name: "m", session: 1, data: `{"docent":1}`}), ""},
		"numbered by chance": {
			dir("", znode{name: "padlock-0000000001", session: stays}, znode{name: "lock-0000000002", session: stays, data: "x"}), "",
		},
		"numbered by chance, one of them read": {
			dir("", znode{name: "lock-0000000001", session: stays}, znode{name: "lock-0000000002"}), "",
		},
		"another recipe's mutex": {
			dir("", znode{name: "lock-0000000001", session: 1}), "mutex 1; 01 holds exclusive unknown",
		},
		"another recipe's mutex behind a znode that stays": {
			dir("", znode{name: "lock-0000000001", session: stays}, znode{name: "lock-0000000002", session: 1}),
			"mutex 1; 01 holds exclusive unknown; 02 waits exclusive unknown for 01",
		},
		"a contender that stays": {
			dir("", znode{name: guid + "lock-0000000001", session: stays}), "mutex 1; 01 holds exclusive curator",
		},
		"docent's contender that stays": {
			dir("", znode{name: "lock-0000000001", session: stays, data: docent}), "mutex 1; 01 holds exclusive docent",
		},
		"mutex": {
			dir("", znode{name: guid + "lock-0000000013", session: 2, data: "10.0.3.9"},
				znode{name: guid + "lock-0000000012", session: 1, data: docent}),
			"mutex 1; 12 holds exclusive docent; 13 waits exclusive curator for 12",
		},
		"mutex, names alone": {
			dir("", znode{name: guid + "lock-0000000013"}, znode{name: guid + "lock-0000000012"}),
			"mutex 1; 12 holds exclusive unknown; 13 waits exclusive unknown for 12",
		},
		"mutex, kazoo with Curator's names": {
			dir("", znode{name: hexID + "-lock-0000000003", session: 1, data: "me"}),
			"mutex 1; 03 holds exclusive kazoo",
		},
		"latch": {
			dir("", znode{name: guid + "latch-0000000003", session: 1}, znode{name: guid + "latch-0000000004", session: 1}),
			"leader 1; 03 holds exclusive curator; 04 waits exclusive curator for 03",
		},
		"read and write": {
			dir("", znode{name: guid + "__READ__0000000001"}, znode{name: guid + "__READ__0000000002"},
				znode{name: guid + "__WRIT__0000000003"}, znode{name: guid + "__READ__0000000004"},
				znode{name: guid + "__WRIT__0000000005"}),
			"readwrite 0; 01 holds read unknown; 02 holds read unknown; 03 waits write unknown for 02+01;" +
				" 04 waits read unknown for 03; 05 waits write unknown for 04+03",
		},
		"a downgrade": {
			dir("", znode{name: guid + "__READ__0000000001"}, znode{name: guid + "__WRIT__0000000001"}),
			"readwrite 0; 01 holds write unknown; 01 holds read unknown",
		},
		"kazoo's lock": {
			dir("", znode{name: hexID + "__lock__0000000001"}, znode{name: hexID + "__lock__0000000002"}),
			"mutex 1; 01 holds exclusive kazoo; 02 waits exclusive kazoo for 01",
		},
		"kazoo's readers and writer": {
			dir("", znode{name: hexID + "__rlock__0000000001"}, znode{name: hexID + "__lock__0000000002"},
				znode{name: hexID + "__rlock__0000000003"}),
			"readwrite 0; 01 holds read kazoo; 02 waits write kazoo for 01; 03 waits read kazoo for 02",
		},
		"both libraries' own names": {
			dir("", znode{name: hexID + "__lock__0000000001"}, znode{name: guid + "lock-0000000002"}),
			"mutex 1 mixed; 02 holds exclusive unknown; 01 holds exclusive kazoo",
		},
		"the end of the counter, names alone": {
			dir("", znode{name: guid + "lock-2147483647"}), "mutex 1; 47 unknown exclusive unknown",
		},
		"exclusive": {
			inspect.Znode{Path: "/l1", Data: []byte(metadata(lease.Metadata{Attempt: "A"})), Stat: below("", "", znode{"x", 1, 0, ""}).Children[0].Stat},
			"exclusive 1; l1 holds exclusive docent",
		},
		"semaphore, nobody waits": {
			semaphore([]znode{{guid + "lease-0000000001", 1, 0, docent}, {guid + "lease-0000000002", 1, 0, ""}}, nil),
			"semaphore 0; 01 holds permit docent; 02 holds permit curator",
		},
		"semaphore, the first has no permit": {
			semaphore([]znode{{guid + "lease-0000000001", 1, 5, docent}, {guid + "lease-0000000002", 2, 7, docent}},
				[]znode{{guid + "lock-0000000012", 2, 6, docent}, {guid + "lock-0000000013", 3, 8, docent}}),
			"semaphore 1; 01 holds permit docent; 02 waits permit docent for 01 turn 12; 13 waits permit docent for 02",
		},
		"semaphore, the first has come after the newest permit of its session": {
			semaphore([]znode{{guid + "lease-0000000001", 1, 5, docent}, {guid + "lease-0000000002", 2, 7, docent}},
				[]znode{{guid + "lock-0000000012", 2, 8, docent}}),
			"semaphore 0; 01 holds permit docent; 02 holds permit docent; 12 waits permit docent",
		},
		"semaphore, several permits at once": {
			semaphore([]znode{{guid + "lease-0000000001", 1, 5, ""}, {guid + "lease-0000000002", 2, 7, ""}, {guid + "lease-0000000003", 2, 7, ""}},
				[]znode{{guid + "lock-0000000012", 2, 6, ""}}),
			"semaphore 0; 01 holds permit curator; 02 waits permit curator for 01 turn 12; 03 waits permit curator for 01 turn 12",
		},
		"semaphore, names alone": {
			semaphore([]znode{{name: guid + "lease-0000000001"}}, []znode{{name: guid + "lock-0000000012"}, {name: guid + "lock-0000000013"}}),
			"semaphore 0; 01 unknown permit unknown; 12 unknown permit unknown; 13 waits permit unknown for 12",
		},
		"semaphore, a contender that has yet to ask for its permit": {
			semaphore(nil, []znode{{guid + "lock-0000000012", 2, 6, docent}}),
			"semaphore 0; 12 waits permit docent",
		},
		"semaphore, a stranger takes a permit": {
			semaphore([]znode{{guid + "lease-0000000001", 1, 0, ""}, {name: "x"}}, nil),
			"semaphore 0 foreign /l/leases/x; 01 holds permit curator",
		},
		"directories called locks and leases": {inspect.Znode{Path: "/l", Children: []inspect.Znode{{Path: "/l/locks"}, {Path: "/l/leases"}}}, ""},
		"kazoo's semaphore": {
			dir("2", znode{hexID, 1, 9, "me"}, znode{hexID[1:] + "a", 2, 8, ""}),
			"semaphore 2; fa holds permit kazoo; ef holds permit kazoo",
		},
		"kazoo's semaphore, with waiters": {
			queued(dir("2", znode{hexID, 1, 9, "me"}, znode{hexID[1:] + "a", 2, 8, ""}),
				znode{name: hexID + "__lock__0000000004"}, znode{name: hexID + "__lock__0000000003"}),
			"semaphore 2; fa holds permit kazoo; ef holds permit kazoo;" +
				" 03 waits permit kazoo for fa|ef; 04 waits permit kazoo for 03",
		},
		"kazoo's semaphore, its permits are free": {
			queued(dir("2", znode{hexID, 1, 9, "me"}), znode{name: hexID + "__lock__0000000003"}),
			"semaphore 2; ef holds permit kazoo; 03 waits permit kazoo",
		},
		"kazoo's semaphore, it has no holder": {
			queued(dir("2"), znode{name: hexID + "__lock__0000000003"}), "semaphore 2; 03 waits permit kazoo",
		},
		"kazoo's semaphore, its permits are unknown": {
			queued(dir("x", znode{hexID, 1, 9, "me"}), znode{name: hexID + "__lock__0000000003"}, znode{name: hexID + "__lock__0000000004"}),
			"semaphore 0; ef holds permit kazoo; 03 waits permit kazoo; 04 waits permit kazoo for 03",
		},
		"kazoo's lock, next to an empty directory": {queued(dir("2")), ""},
		"kazoo's lock, next to a mutex": {
			queued(dir("2", znode{name: guid + "lock-0000000012"}), znode{name: hexID + "__lock__0000000003"}),
			"mutex 1; 12 holds exclusive unknown",
		},
		"a number above other names": {dir("2", znode{name: "a"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, ok := inspect.Of(test.dir)
			if ok != (test.want != "") {
				t.Fatalf("is a lock: %v, %s", ok, brief(l))
			}
			if got := brief(l); ok && got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestOf_shows_what_was_read(t *testing.T) {
	t.Parallel()
	docent := metadata(lease.Metadata{Host: "h", PID: 7, Owner: "o", Data: []byte("d")})
	l, _ := inspect.Of(dir("",
		znode{guid + "lock-0000000001", 0x11, 5, docent},
		znode{guid + "lock-0000000002", 0x12, 6, "10.0.3.9"},
		znode{name: guid + "lock-0000000003"}))
	if l.Complete {
		t.Error("complete, with a contender that was not read")
	}
	if len(l.Contenders) != 3 || len(l.Holders()) != 1 || len(l.Waiters()) != 2 {
		t.Fatalf("contenders: %s", brief(l))
	}
	first, second, third := l.Contenders[0], l.Contenders[1], l.Contenders[2]
	if first.Session != 0x11 || first.Czxid != 5 || first.Sequence != 1 || first.Created.IsZero() || string(first.Data) != "d" {
		t.Errorf("first: %+v", first)
	}
	if first.Meta == nil || first.Meta.Host != "h" || first.Meta.Owner != "o" || first.Label != "" {
		t.Errorf("metadata of the first: %+v, label %q", first.Meta, first.Label)
	}
	if second.Label != "10.0.3.9" || second.Meta != nil {
		t.Errorf("second: %+v", second)
	}
	if third.Read() || third.Session != 0 {
		t.Errorf("third: %+v", third)
	}
}

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
