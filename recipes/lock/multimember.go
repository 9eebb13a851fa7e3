package lock

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/telemetry"
)

// A member is one of a [Multi]'s locks.
type member struct {
	lock      Locker
	name      string // for errors and logs
	path      string // in the ensemble
	rank      int    // of its kind, among locks of one path
	position  int    // among those that were given
	client    *framework.Client
	owners    *owners    // of the client; nil for a foreign lock, as client is
	queueLock *queueLock // nil if it can't be locked together with others
	tel       telemetry.Lock
}

// The ranks of kinds. A write side comes before the read side, which is then
// re-entered: the other way round would be an upgrade.
const (
	rankMutex = iota + 1
	rankWrite
	rankRead
	rankSemaphoreMutex
	rankUnfairMutex
	rankForeign
)

// A pather is a foreign lock that has a path, and so a place in the order.
type pather interface{ Path() string }

// membersOf returns the member for l, or a Multi's members.
func membersOf(l Locker) ([]member, error) {
	if v := reflect.ValueOf(l); l == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("must not be nil")
	}
	m := member{lock: l}
	switch l := l.(type) {
	case *Multi:
		return l.members, nil
	case *Mutex:
		m.of(&l.queueLock, l.queueLock.path, rankMutex)
	case *Side:
		rank := rankRead
		if l.queueLock.kind == writeKind {
			rank = rankWrite
		}
		m.of(&l.queueLock, l.name+" side of "+l.queueLock.path, rank)
	case *SemaphoreMutex:
		p := &l.pool
		m.name, m.path, m.rank = p.Path, p.Client.AbsolutePath(p.Path), rankSemaphoreMutex
		m.client, m.owners, m.tel = p.Client, ownersOf(p.Client), p.Telemetry
	case *UnfairMutex:
		m.name, m.path, m.rank = l.path, l.full, rankUnfairMutex
		m.client, m.owners, m.tel = l.client, ownersOf(l.client), l.tel
	case pather:
		m.name, m.path, m.rank = l.Path(), l.Path(), rankForeign
	default:
		m.name, m.rank = fmt.Sprintf("%T", l), rankForeign
	}
	return []member{m}, nil
}

func (m *member) of(q *queueLock, name string, rank int) {
	m.name, m.path, m.rank = name, q.full, rank
	m.client, m.owners, m.queueLock, m.tel = q.queue.Client, q.owners, q, q.tel
}

// same reports whether both are one lock.
func (m member) same(other member) bool {
	if m.owners == nil || other.owners == nil {
		return reflect.ValueOf(m.lock).Comparable() && m.owners == other.owners && m.lock == other.lock
	}
	return m.owners == other.owners && m.path == other.path && m.rank == other.rank
}

// sharesWith reports whether both may be at one path: see the package's section on kinds. Nothing is
// known of a foreign lock.
func (m member) sharesWith(other member) bool {
	if m.owners == nil || m.owners != other.owners || m.path != other.path || m.rank == other.rank {
		return true
	}
	sides := func(rank int) bool { return rank == rankRead || rank == rankWrite }
	return sides(m.rank) && sides(other.rank)
}

// compare orders members as all Multis lock them. The order is total: members of one path and kind
// belong to different clients, and keep the order given.
func (m member) compare(other member) int {
	return cmp.Or(cmp.Compare(m.path, other.path), cmp.Compare(m.rank, other.rank), cmp.Compare(m.position, other.position))
}

// maxTogether bounds the members of one transaction. The request then takes about 40 KiB of the 1
// MiB that servers accept by default, unless the data is large.
const maxTogether = 100

// together returns how many of the first members can be locked by one transaction. The two sides of
// one lock can't: the caller would wait for itself.
func together(members []member, limit int) int {
	n := 0
	for n < len(members) && n < limit && members[n].queueLock != nil && members[n].owners == members[0].owners {
		if n > 0 && members[n].path == members[n-1].path {
			break
		}
		n++
	}
	return n
}
