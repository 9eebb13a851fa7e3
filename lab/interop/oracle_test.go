package interop_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/history"
)

// An oracle knows who held a lock when, from the holders' own word.
type oracle struct {
	path string

	mu      sync.Mutex // guards records
	records []history.Record
}

// An entry is one holder's stay.
type entry struct {
	who     string // library and process
	library string
	fence   int64
	shared  bool // with others who share
}

// turn has the contender lock, stay for a moment, and unlock.
func (o *oracle) turn(c contender) error {
	call := history.Monotonic()
	held, err := c.lock(noLimit)
	granted := history.Monotonic()
	if err != nil || !held {
		return fmt.Errorf("lock: %v, %v; want it held", held, err)
	}
	e, lease := c.entry(), fmt.Sprint("lease-", serial.Add(1))
	o.note(history.Record{
		Kind: history.Granted, Model: history.ReadWrite().Name, Group: o.path, Lease: lease, Client: e.library, Owner: e.who,
		Shared: e.shared, Locks: []history.LockRef{{Lock: o.path, Fence: e.fence}}, Call: call, Return: granted,
	})
	<-time.After(time.Millisecond) // others get the time to come in, if the lock lets them
	release := history.Monotonic()
	if err := c.unlock(); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	o.note(history.Record{Kind: history.Released, Lease: lease, Call: release, Return: history.Monotonic()})
	return nil
}

func (o *oracle) note(r history.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.records = append(o.records, r)
}

// check fails the test unless so many turns follow one another as the lock promises, with fences that grow, and
// the libraries follow each other.
func (o *oracle) check(t testing.TB, turns int) {
	t.Helper()
	h := must.Get(history.Assemble(o.records))(t)
	for _, v := range must.Get(h.Check(generous))(t) {
		if !v.OK() {
			picture := must.Get(v.Save(filepath.Join("..", "..", ".cache", "interop")))(t)
			t.Errorf("%s: porcupine says %s: see %s", v.Group, v.Result, picture)
		}
	}
	if len(h.Leases) != turns {
		t.Errorf("%d turns, want %d", len(h.Leases), turns)
	}
	libraries := slices.CompactFunc(h.Leases, func(a, b *history.LeaseRecord) bool { return a.Grant.Client == b.Grant.Client })
	if len(libraries) < 2 {
		t.Error("no library ever followed the other: that was no contest")
	}
}
