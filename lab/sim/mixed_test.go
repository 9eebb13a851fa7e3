package sim_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// Two kinds of lock on one path are a fault of the program that uses them. Each kind is refused while
// another one is ahead, so the path is a target like a lock: at no time has it two holders.

// mixedKind is the kind of the target, and mixedPath its path.
const mixedKind, mixedPath = "mixed", "/sim/mixed"

// oneKind is about refusals. Exclusion is about grants.
const oneKind guarantee = "one kind per path"

// mixedKinds are the kinds of lock that workers take for the path's. With their own names they are
// those of other targets.
var mixedKinds = []string{"mutex", "write", "semaphore"}

func mixed() *recipe {
	x := &recipe{
		name: mixedKind, oneIn: 15, plan: (*plan).mix, bugs: mixedBugs(),
		guarantees: []guarantee{oneKind}, met: comeAgain(mixedKind), lockers: map[string]lockerOf{},
	}
	for _, kind := range mixedKinds {
		use := mixedKind + "/" + kind
		x.met = append(x.met, "grants "+use, "Lock "+use+": mixed", "TryLock "+use+": mixed", "refused rightly: "+kind)
		x.lockers[use] = func(k *worker, f *framework.Client, at string, h *handle) error {
			own, err := k.handle(f, kind+" "+at)
			if err == nil {
				h.locker, h.list = own.locker, own.list
			}
			return err
		}
	}
	return x
}

// mix adds the path, with a worker or two of each client. Clients that follow each other have different
// kinds.
func (p *plan) mix(r *rand.Rand) {
	t := newTarget(mixedPath, mixedKind)
	p.targets = append(p.targets, t)
	first := r.IntN(len(mixedKinds))
	for i := range p.clients {
		kind := mixedKinds[(first+i)%len(mixedKinds)]
		for range 1 + r.IntN(2) {
			p.clients[i].workers = append(p.clients[i].workers, workerPlan{
				seed: r.Uint64(), brisk: r.IntN(2) == 0, kinds: []string{mixedKind + "/" + kind + " " + mixedPath},
			})
			kind = mixedKinds[r.IntN(len(mixedKinds))]
		}
	}
}

// kindsSeen is which kind the first contender on the path was of, as the leader knows. The environment's mutex
// guards it.
type kindsSeen struct {
	contenders map[string]znode // by path
	firsts     []firstKind      // in the order of time
}

// A firstKind is the kind of the first contender, "" for none, from a moment on.
type firstKind struct {
	from time.Duration
	kind string
}

// kindOf returns the kind of lock that has a contender's znode at the path of the locks; "" if it is none.
func kindOf(znode string) string {
	dir, name := zkpath.Split(znode)
	switch {
	case dir == mixedPath+"/leases":
		return "semaphore"
	case dir != mixedPath:
		return ""
	case strings.Contains(name, "__WRIT__"):
		return "write"
	case strings.Contains(name, "-lock-"):
		return "mutex"
	}
	return ""
}

// observe records a transaction.
func (s *kindsSeen) observe(now time.Duration, x zkserver.Transaction) {
	for _, c := range x.Changes {
		switch {
		case kindOf(c.Path) == "":
			continue
		case c.Kind == zkserver.Created:
			s.contenders[c.Path] = znode{c.Owner, x.Zxid}
		case c.Kind == zkserver.Deleted:
			delete(s.contenders, c.Path)
		}
		s.note(now)
	}
}

// note records the kind of the first contender if it is another one than before.
func (s *kindsSeen) note(now time.Duration) {
	kind, earliest := "", int64(0)
	for path, n := range s.contenders {
		if kind == "" || n.czxid < earliest {
			kind, earliest = kindOf(path), n.czxid
		}
	}
	if n := len(s.firsts); n == 0 && kind != "" || n > 0 && s.firsts[n-1].kind != kind {
		s.firsts = append(s.firsts, firstKind{now, kind})
	}
}

// other reports whether the first contender was of another kind at some moment since.
func (s *kindsSeen) other(kind string, since time.Duration) bool {
	for _, first := range slices.Backward(s.firsts) {
		if first.kind != "" && first.kind != kind {
			return true
		}
		if first.from < since {
			return false
		}
	}
	return false
}

// checkRefusal is the validator of "one kind per path": a call that began at that moment was refused only
// if the first contender was of another kind meanwhile. A server may be behind after a fault.
func (k *worker) checkRefusal(h *handle, began time.Duration, err error) {
	if !errors.Is(err, lock.ErrMixed) {
		return
	}
	env := k.env
	env.mu.Lock()
	defer env.mu.Unlock()
	if env.ctx.Err() != nil || len(env.srv.Frontends()) > 1 && env.harmedLocked(nil, began-env.settling()) {
		return
	}
	_, kind, _ := strings.Cut(h.kind(), "/")
	if h.target == nil || h.target.kind != mixedKind || !env.kinds.other(kind, began) {
		env.violatedLocked(oneKind, "%s is refused %s, and no other kind has been first since %v: %v", k.name, h.name, began, err)
		return
	}
	env.counts["refused rightly: "+kind]++
}

// mixedBugs are what the validators have to find.
func mixedBugs() []deliberate {
	return []deliberate{
		{exclusion, "a client refuses no other kind", mixedPath + " is granted to", func(b *bug) { b.locker = of(mixedKind, blindToKinds) }},
		{oneKind, "a contender that would wait is refused", "no other kind has been first", func(b *bug) { b.locker = of(mixedKind, jealous) }},
		{liveness, "a kind is refused for good", "can't have " + mixedKind, func(b *bug) { b.locker = of(mixedKind, resentful) }},
	}
}

// blindToKinds has the first client see no contenders but its own.
func blindToKinds(k *worker, f *framework.Client, h *handle) lock.Locker {
	if k.c != k.env.clients[0] {
		return h.locker
	}
	return made(lock.NewMutex(f, mixedPath+"-other"))
}

// jealous takes every holder for one of another kind.
func jealous(_ *worker, _ *framework.Client, h *handle) lock.Locker {
	try := func(ctx context.Context) (*lock.Lease, error) {
		l, err := h.locker.TryLock(ctx)
		if errors.Is(err, lock.ErrHeld) {
			err = lock.ErrMixed
		}
		return l, err
	}
	return wrapped{try: try, lock: try}
}

// resentful takes the lock for held once it was refused.
func resentful(_ *worker, _ *framework.Client, h *handle) lock.Locker {
	refused := false // the worker's alone
	once := func(ask func(context.Context) (*lock.Lease, error)) func(context.Context) (*lock.Lease, error) {
		return func(ctx context.Context) (*lock.Lease, error) {
			if refused {
				return nil, lock.ErrHeld
			}
			l, err := ask(ctx)
			refused = errors.Is(err, lock.ErrMixed)
			return l, err
		}
	}
	return wrapped{lock: once(h.locker.Lock), try: once(h.locker.TryLock)}
}
