package inspect_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lease"
)

// A system is owners and fair locks, for comparison with what the znodes show. It has its own rules of
// grants. The znodes have the czxid of the step in which they were created.
type system struct {
	locks  []simLock
	owners int
	step   int64
}

type simLock struct {
	kind    inspect.Kind
	permits int        // of a semaphore
	entries []simEntry // in the order of arrival
}

type simEntry struct {
	owner int
	write bool // of a read/write lock
	czxid int64
}

func newSystem(pick *rand.Rand) *system {
	s := &system{owners: 2 + pick.IntN(4), step: 1}
	for range 1 + pick.IntN(4) {
		kinds := []inspect.Kind{inspect.Mutex, inspect.Mutex, inspect.ReadWrite, inspect.Semaphore}
		s.locks = append(s.locks, simLock{kind: kinds[pick.IntN(len(kinds))], permits: 1 + pick.IntN(3)})
	}
	return s
}

// holds reports whether the lock's i-th entry is granted.
func (l simLock) holds(i int) bool {
	ahead := l.entries[:i]
	switch l.kind {
	case inspect.Semaphore:
		return i < l.permits
	case inspect.ReadWrite:
		return !slices.ContainsFunc(ahead, func(e simEntry) bool { return e.write || l.entries[i].write })
	}
	return len(ahead) == 0
}

// entriesOf returns the number of the owner's entries that are granted, and of those that are not.
func (s *system) entriesOf(owner int) (held, waiting int) {
	for _, l := range s.locks {
		for i, e := range l.entries {
			switch {
			case e.owner != owner:
			case l.holds(i):
				held++
			default:
				waiting++
			}
		}
	}
	return held, waiting
}

// request has the owner contend for the lock. It has one waiting entry for each lock at most.
func (s *system) request(owner, lock int, write bool) {
	l := &s.locks[lock]
	for i, e := range l.entries {
		if e.owner == owner && !l.holds(i) {
			return
		}
	}
	s.step++
	l.entries = append(l.entries, simEntry{owner, write, s.step})
}

// leave removes all entries of the owner from the lock.
func (s *system) leave(owner, lock int) {
	l := &s.locks[lock]
	l.entries = slices.DeleteFunc(slices.Clone(l.entries), func(e simEntry) bool { return e.owner == owner })
}

// act has one random owner do something: request, withdraw or release. An owner that waits may
// ask for more if it may wait for several locks.
func (s *system) act(pick *rand.Rand, several bool) {
	owner, lock := pick.IntN(s.owners), pick.IntN(len(s.locks))
	_, waiting := s.entriesOf(owner)
	switch {
	case pick.IntN(5) == 0:
		s.leave(owner, lock)
	case waiting == 0 || several:
		s.request(owner, lock, pick.IntN(2) == 0)
	}
}

func (s *system) clone() *system {
	c := *s
	c.locks = slices.Clone(s.locks)
	for i := range c.locks {
		c.locks[i].entries = slices.Clone(s.locks[i].entries)
	}
	return &c
}

// stuck runs the system: an owner that does not wait, or with anyWait one that has been granted any of
// its waits, ends and leaves all locks. It returns the owners that never end.
func (s *system) stuck(anyWait bool) []int {
	s = s.clone()
	waited := make([]int, s.owners)
	for owner := range s.owners {
		_, waited[owner] = s.entriesOf(owner)
	}
	ended := make([]bool, s.owners)
	for again := true; again; {
		again = false
		for owner := range s.owners {
			_, waiting := s.entriesOf(owner)
			if ended[owner] || waiting > 0 && (!anyWait || waiting == waited[owner]) {
				continue
			}
			ended[owner], again = true, true
			for lock := range s.locks {
				s.leave(owner, lock)
			}
		}
	}
	var stuck []int
	for owner, over := range ended {
		if !over {
			stuck = append(stuck, owner)
		}
	}
	return stuck
}

func ownerName(owner int) string { return fmt.Sprintf("owner%d", owner) }

// znode returns the znode of the i-th entry in the directory.
func (s *system) znode(dir, kind string, e simEntry, czxid int64) inspect.Znode {
	data := lease.Metadata{Version: 1, Host: "h", Owner: ownerName(e.owner), Party: ownerName(e.owner)}.Encode()
	return inspect.Znode{
		Path: fmt.Sprintf("%s/_c_%d-%s%010d", dir, czxid, kind, czxid), Data: data,
		Stat: framework.Stat{Czxid: czxid, EphemeralOwner: int64(100 + e.owner)},
	}
}

// directory returns what an ensemble would show of the lock.
func (s *system) directory(lock int) inspect.Znode {
	l, path := s.locks[lock], fmt.Sprintf("/%d", lock)
	dir := inspect.Znode{Path: path}
	if l.kind == inspect.Semaphore {
		leases, turns := inspect.Znode{Path: path + "/leases"}, inspect.Znode{Path: path + "/locks"}
		for i, e := range l.entries {
			if i <= l.permits { // the first of the queue has a znode among the leases
				leases.Children = append(leases.Children, s.znode(leases.Path, "lease-", e, 2*e.czxid+1))
			}
			if i >= l.permits {
				turns.Children = append(turns.Children, s.znode(turns.Path, "lock-", e, 2*e.czxid))
			}
		}
		dir.Children = []inspect.Znode{leases, turns}
		return dir
	}
	for _, e := range l.entries {
		kind := "lock-"
		if l.kind == inspect.ReadWrite {
			kind = map[bool]string{true: "__WRIT__", false: "__READ__"}[e.write]
		}
		dir.Children = append(dir.Children, s.znode(path, kind, e, e.czxid))
	}
	return dir
}

// add adds the lock to the snapshot as it is now.
func (s *system) add(to *inspect.Snapshot, lock int) {
	if l, ok := inspect.Of(s.directory(lock)); ok {
		to.Locks = append(to.Locks, l)
	}
}
