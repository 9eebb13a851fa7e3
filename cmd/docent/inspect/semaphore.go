package inspect

import (
	"slices"

	"github.com/docent-go/docent/internal/queuenode"
)

// semaphoreOf returns a semaphore of Curator's format. Its holders have a znode in leases. The first
// contender of the queue in locks has one too while it waits for a permit.
func semaphoreOf(dir Znode) (Lock, bool) {
	leases, ok := dir.child(leasesDir)
	if !ok {
		return Lock{}, false
	}
	turns, _ := dir.child(turnsDirectory)
	permits := format{kind: Semaphore, kinds: []string{leaseKind}, predecessor: none}.contenders(leases.Children)
	queued := queueFormat().contenders(turns.Children)
	if len(permits)+len(queued) == 0 {
		return Lock{}, false
	}
	l := Lock{Path: dir.Path, Kind: Semaphore, Foreign: foreign(leases)}
	for i := range permits {
		permits[i].Side = Permit
	}
	if len(queued) > 0 {
		queued[0].State = Waits // it asks for its permits next
	}
	if len(queued) > 0 && len(permits) > 0 {
		l.Permits = match(permits, queued, l.Foreign)
	}
	if len(queued) > 0 && len(permits) > 0 && permits[len(permits)-1].Turn != "" {
		queued = queued[1:] // it is among the permits
		if len(queued) > 0 {
			queued[0].WaitsFor = []string{permits[len(permits)-1].Znode}
		}
	}
	l.Contenders = append(permits, queued...)
	return withOtherKinds(l, dir), true
}

// withOtherKinds returns the semaphore with the contenders of other kinds in its directory, which do not exclude
// those of the semaphore.
func withOtherKinds(l Lock, dir Znode) Lock {
	queues, ok := queuesOf(dir)
	if !ok {
		return l
	}
	l.Mixed = true
	for _, c := range queues.Contenders {
		c.queue++ // the semaphore's have the first
		l.Contenders = append(l.Contenders, c)
	}
	return l
}

func none([]queuenode.Node, int, int) int { return -1 }

// queueFormat is the format of a semaphore's queue.
func queueFormat() format {
	return format{Semaphore, []string{lockKind}, map[string]Side{lockKind: Permit}, queuenode.ExclusivePredecessor}
}

// foreign returns the children of leases that are no permits. They take a permit nevertheless.
func foreign(leases Znode) []string {
	var paths []string
	for _, z := range leases.Children {
		if len(queuenode.Sort([]string{z.name()}, leaseKind)) == 0 {
			paths = append(paths, z.Path)
		}
	}
	slices.Sort(paths)
	return paths
}

// match finds the permits of the first contender in the queue. It marks them as waiting if there are
// others, because that contender leaves the queue when it is granted its permits. It returns the
// number of permits if that follows, else 0. One transaction creates the permits of one contender,
// after its znode in the queue and in the same session.
func match(permits, queued []Contender, foreign []string) int {
	first, newest := &queued[0], permits[len(permits)-1]
	if !first.Read() || !newest.Read() {
		first.State = Unknown
		for i := range permits {
			if !permits[i].Read() {
				permits[i].State = Unknown
			}
		}
		return 0
	}
	if newest.Session != first.Session || newest.Czxid < first.Czxid {
		return 0
	}
	others := slices.Clone(foreign)
	own := 0
	for _, p := range permits {
		if p.Czxid == newest.Czxid {
			own++
		} else {
			others = append(others, p.Znode)
		}
	}
	for i := range permits {
		if permits[i].Czxid != newest.Czxid {
			continue
		}
		permits[i].Turn = first.Znode
		if len(others) > 0 {
			permits[i].State, permits[i].WaitsFor, permits[i].AnyOf = Waits, others, true
		}
	}
	if own == 1 {
		return len(others)
	}
	return 0
}
