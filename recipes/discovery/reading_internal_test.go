package discovery

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/docent-go/docent/framework"
)

var errBad = errors.New("bad")

// A fixture is a list that counts what is decoded and reported.
type fixture struct {
	list    list[string]
	decoded atomic.Int32

	mu      sync.Mutex // guards following
	reports []string
}

func newFixture() *fixture {
	f := new(fixture)
	f.list.reader = &reader[string]{
		decode: func(data []byte) (string, error) {
			f.decoded.Add(1)
			if strings.HasPrefix(string(data), "bad") {
				return "", errBad
			}
			return string(data), nil
		},
		report: func(path string, err error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.reports = append(f.reports, fmt.Sprint(path, " ", err))
		},
	}
	return f
}

func znode(path, data string, mzxid int64) rawZnode {
	return rawZnode{Path: path, Data: []byte(data), Stat: framework.Stat{Czxid: 1, Mzxid: mzxid}}
}

func (f *fixture) values(znodes ...rawZnode) []value[string] {
	return f.list.values(slices.Values(znodes))
}

func text(values []value[string]) string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = v.of
	}
	return strings.Join(all, " ")
}

func TestAStateIsDecodedAndReportedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture()
	a, b, bad := znode("/a", "A", 1), znode("/b", "B", 1), znode("/x", "bad", 1)
	first := f.values(a, bad, b)
	again := f.values(a, bad, b)
	if text(first) != "A B" || !same(first, again) || f.decoded.Load() != 3 || len(f.reports) != 1 {
		t.Errorf("%q, same %v, %d decoded, reports %v", text(first), same(first, again), f.decoded.Load(), f.reports)
	}
	changed := f.values(znode("/a", "A", 2), bad, b) // the same data, written again
	if same(first, changed) || f.decoded.Load() != 4 {
		t.Errorf("a state was taken for another one, %d decoded", f.decoded.Load())
	}
	f.values(a, znode("/x", "bad too", 3))
	f.values(a)
	f.values(a, znode("/x", "bad too", 3)) // reported before
	if want := []string{"/x bad", "/x bad"}; !slices.Equal(f.reports, want) {
		t.Errorf("reports %q, want one for each state", f.reports)
	}
	if same(first, f.values(a)) || !same(f.values(), nil) {
		t.Error("lists of different lengths are the same")
	}
}

// A znode that was deleted and created again has another czxid, and is another state.
func TestAZnodeThatWasCreatedAgainIsAnotherState(t *testing.T) {
	t.Parallel()
	f := newFixture()
	first := f.values(znode("/a", "A", 7))
	again := rawZnode{Path: "/a", Data: []byte("B"), Stat: framework.Stat{Czxid: 7, Mzxid: 7}}
	if got := f.values(again); text(got) != "B" || same(first, got) {
		t.Errorf("%q after the second creation", text(got))
	}
}

// report may read the list, and calls may run at the same time.
func TestAListIsReadConcurrently(t *testing.T) {
	t.Parallel()
	f := newFixture()
	note := f.list.reader.report
	f.list.reader.report = func(path string, err error) {
		note(path, err)
		f.values(znode("/a", "A", 1))
	}
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() {
			for j := range 100 {
				if got := text(f.values(znode("/a", "A", 1), znode("/x", "bad", int64(i*100+j)))); got != "A" {
					t.Errorf("values %q", got)
				}
			}
		})
	}
	calls.Wait()
	if len(f.reports) == 0 {
		t.Error("nothing was reported")
	}
}
