package sim_test

import (
	"context"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
)

// A target is one lock that clients contend for, and what is known of it from outside
// ZooKeeper.
type target struct {
	path, kind string // immutable
	permits    int    // immutable; how many leases share it, 0 for a lock

	// guarded by environment.mu
	stakes    []*lockRecord
	granted   map[nodeKey]string  // to which owner, at last
	made      map[int64][]nodeKey // the permits' znodes, by the transaction that created them
	ahead     map[nodeKey]nodeKey // of permits made out of turn: the first in the queue
	highest   fence               // of all holders so far
	exclusive fence               // of those that were to be alone
	register  int64               // fence of the latest guarded write, as the server has applied it
	freed     time.Duration       // when a stake ended last
	writers   time.Duration       // when an attempt ended last that readers may wait for
	drops     time.Duration       // until when servers drop events of its znodes
}

// A fence is a number and the owner that had it.
type fence struct {
	number int64
	party  string
}

// A nodeKey names a znode among all that ever had its path.
type nodeKey struct {
	path  string
	czxid int64
}

func newTarget(path, kind string) *target {
	return &target{path: path, kind: kind, granted: map[nodeKey]string{}, made: map[int64][]nodeKey{}, ahead: map[nodeKey]nodeKey{}}
}

// uses returns in which ways the lock can be had: see the kinds of a handle.
func (t *target) uses() []string {
	if t.kind == "rw" {
		return []string{"read " + t.path, "write " + t.path, "write " + t.path}
	}
	return []string{t.kind + " " + t.path}
}

// reentrant reports whether an owner may have the lock more than once.
func (t *target) reentrant() bool { return t.kind == "mutex" || t.kind == "rw" }

// alone returns the guarantee that no two owners have the lock at a time.
func (t *target) alone() guarantee {
	switch t.kind {
	case partitionKind:
		return oneServer
	case scheduleKind:
		return oneRun
	}
	return exclusion
}

// registerPath is where guarded writes go.
func (t *target) registerPath() string {
	return "/register/" + strings.ReplaceAll(t.path[1:], "/", "-")
}

// ranks returns the kind and number in the name of a contender's znode; false if it
// has none.
func ranks(node string) (kind string, number int64, ok bool) {
	name := path.Base(node)
	if len(name) < 10 {
		return "", 0, false
	}
	number, err := strconv.ParseInt(name[len(name)-10:], 10, 64)
	if err != nil {
		return "", 0, false
	}
	switch {
	case strings.Contains(name, "__READ__"):
		return "read", number, true
	case strings.Contains(name, "__WRIT__"):
		return "write", number, true
	}
	return "", number, true
}

// nodeOf returns the path of the lease's znode, or of its first member's.
func nodeOf(l *lock.Lease) string {
	if members := l.Members(); members != nil {
		return unspelled(members[0].Node())
	}
	return unspelled(l.Node())
}

// A handle is one way in which a worker can have a lock.
type handle struct {
	name      string
	target    *target // nil for a multi
	permits   int     // that it acquires; 0 for a lock
	locker    lock.Locker
	reentrant bool
	downgrade lock.Locker // the read side, for who has the write side
	unlock    func(context.Context) error
	held      func(context.Context) int
	list      func(context.Context) ([]lock.Participant, error)
	run       func(context.Context, func(context.Context, *lock.Lease) error) error // of an election
}

// handle makes the worker's lock of a kind, for the client that it has now.
func (k *worker) handle(f *framework.Client, use string) (*handle, error) {
	kind, at, _ := strings.Cut(use, " ")
	h := &handle{name: use, reentrant: kind == "mutex" || kind == "read" || kind == "write"}
	if at != "" {
		h.target = k.env.target(at)
	}
	var err error
	client, path := k.c.spelled(f, at)
	switch kind {
	case "mutex":
		var m *lock.Mutex
		if m, err = lock.NewMutex(client, path, k.c.options(true)...); err != nil {
			break
		}
		h.locker, h.unlock, h.held, h.list = m, m.Unlock, m.Held, m.Participants
		if k.c.plan.handoff > 0 {
			h.locker, err = k.c.local(f, at, m)
			h.reentrant, h.unlock, h.held = false, nil, nil
		}
	case "read", "write":
		var rw *lock.RWMutex
		if rw, err = lock.NewRWMutex(client, path, k.c.options(true)...); err != nil {
			break
		}
		side := rw.Read()
		if kind == "write" {
			side, h.downgrade = rw.Write(), rw.Read()
		}
		h.locker, h.unlock, h.held, h.list = side, side.Unlock, side.Held, rw.Participants
	case "semaphore":
		var m *lock.SemaphoreMutex
		if m, err = lock.NewSemaphoreMutex(client, path, k.c.options(true)...); err == nil {
			h.locker, h.list = m, m.Participants
		}
	case "exclusive":
		var m *lock.UnfairMutex
		if m, err = lock.NewUnfairMutex(client, path, k.c.options(false)...); err == nil {
			h.locker, h.list = m, m.Participants
		}
	case "multi":
		err = k.multi(f, h)
	default:
		err = k.env.plan.lockerOf(kind)(k, f, at, h)
	}
	if err == nil {
		sound := *h
		h.locker = k.env.bug.locker(k, f, &sound)
	}
	if err == nil && h.downgrade != nil {
		h.downgrade = k.env.bug.read(k, f, h)
	}
	return h, err
}

// multi makes the lock of all targets together.
func (k *worker) multi(f *framework.Client, h *handle) error {
	var members []lock.Locker
	for _, at := range k.plan.multi {
		use := k.env.target(at).uses()
		member, err := k.handle(f, use[len(use)-1])
		if err != nil {
			return err
		}
		members = append(members, member.locker)
	}
	m, err := lock.NewMulti(members...)
	if err == nil {
		h.locker = m
	}
	return err
}

// options returns those of the client's locks.
func (c *client) options(queue bool) []lock.Option {
	opts := []lock.Option{recipes.WithData([]byte(canary))}
	if c.plan.onLoss {
		opts = append(opts, recipes.WithLossPolicy(lease.OnSuspend))
	}
	if !queue {
		return opts
	}
	if c.plan.revoked {
		opts = append(opts, recipes.WithRevocation(c.asked))
	}
	if c.plan.position {
		opts = append(opts, recipes.WithQueuePosition(func(int) {}))
	}
	return opts
}
