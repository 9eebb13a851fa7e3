package inspect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// kazooQueue ends the path of the directory in which the waiters of a kazoo semaphore queue. The
// directory is next to the semaphore's, and is that of a kazoo Lock.
const kazooQueue = "-" + kazooKind

// kazooSemaphoreOf returns a semaphore of kazoo. All its children hold. Its waiters have znodes in
// dir.Queue, and the first of them waits until fewer contenders hold than there are permits.
func kazooSemaphoreOf(dir Znode) (Lock, bool) {
	if !mayBeKazooSemaphore(dir) {
		return Lock{}, false
	}
	permits, _ := kazooPermits(dir.Data)
	waiters := kazooWaiters(dir.Queue)
	if permits == 0 && len(waiters) == 0 || len(dir.Children)+len(waiters) == 0 {
		return Lock{}, false
	}
	l := Lock{Path: dir.Path, Kind: Semaphore, Permits: permits}
	for _, z := range dir.Children {
		l.Contenders = append(l.Contenders, contenderOf(z, Contender{Side: Permit, State: Holds}))
	}
	slices.SortFunc(l.Contenders, func(a, b Contender) int {
		return cmp.Or(cmp.Compare(a.Czxid, b.Czxid), cmp.Compare(a.Znode, b.Znode))
	})
	if full := permits > 0 && len(l.Contenders) >= permits; full && len(waiters) > 0 {
		for _, holder := range l.Contenders {
			waiters[0].WaitsFor = append(waiters[0].WaitsFor, holder.Znode)
		}
		waiters[0].AnyOf = true
	}
	l.Contenders = append(l.Contenders, waiters...)
	return l, true
}

// kazooWaiters returns the contenders in the queue. The first takes the next permit.
func kazooWaiters(queue *Znode) []Contender {
	if queue == nil {
		return nil
	}
	waiters := readWrite(kazooKind, kazooReadKind).contenders(queue.Children)
	for i := range waiters {
		waiters[i].Side = Permit
		if i == 0 && waiters[i].State == Holds {
			waiters[i].State = Waits
		}
	}
	return waiters
}

// mayBeKazooSemaphore reports whether all children have the names of a kazoo semaphore's holders. A
// directory without children may be one if it has a queue.
func mayBeKazooSemaphore(dir Znode) bool {
	if len(dir.Children) == 0 {
		return dir.Queue != nil
	}
	return !slices.ContainsFunc(dir.Children, func(z Znode) bool {
		name := z.name()
		return len(name) != kazooID || !isKazooName(name)
	})
}

// isKazooSemaphore reports whether the lock is a semaphore of kazoo.
func (l Lock) isKazooSemaphore() bool {
	return l.Kind == Semaphore && len(l.Contenders) > 0 && l.Contenders[0].By == Kazoo
}

// kazooPermits returns the number of permits, which kazoo writes as the data of the directory.
func kazooPermits(data []byte) (int, bool) {
	permits, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || permits < 1 {
		return 0, false
	}
	return permits, true
}
