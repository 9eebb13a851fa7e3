package sim_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/docent-go/docent/framework"
)

// Contention is many goroutines of one client that want the same lock, again and again. They use
// what they know together, and see little of what others do in the lock's directory.

// crowd makes the first client of some schedules one.
func (p *plan) crowd(r *rand.Rand) {
	t := p.targets[0]
	if t.kind == "exclusive" || r.IntN(2) == 0 {
		return
	}
	c := &p.clients[0]
	c.workers = nil
	for range 3 + r.IntN(4) {
		c.workers = append(c.workers, workerPlan{seed: r.Uint64(), owned: r.IntN(8) == 0, brisk: true, kinds: t.uses()})
	}
}

// directories returns where the lock's contenders have their znodes.
func (t *target) directories() []string {
	switch t.kind {
	case "exclusive", scheduleKind, meetingKind: // all children of a double barrier are members
		return nil
	case "semaphore", permitsKind:
		return []string{t.path + "/locks", t.path + "/leases"}
	case mixedKind:
		return []string{t.path, t.path + "/locks", t.path + "/leases"}
	}
	return []string{t.path}
}

// directoryKinds are what an operator may do to the directory of a lock.
func directoryKinds() []*faultKind {
	onDirectory := func(name string, do func(ctx context.Context, operator *framework.Client, dir string) error) *faultKind {
		return sparing(always(name, 3, func(env *environment, r *rand.Rand, span time.Duration) func() {
			env.operate(r, span, func(ctx context.Context, dir string) error { return do(ctx, env.operator, dir) })
			return nil
		}))
	}
	return []*faultKind{
		onDirectory("write to a lock's directory", func(ctx context.Context, operator *framework.Client, dir string) error {
			_, err := operator.Set(ctx, dir, nil, framework.AnyVersion)
			return err
		}),
		onDirectory("leave a child in a lock's directory", func(ctx context.Context, operator *framework.Client, dir string) error {
			if strings.HasSuffix(dir, "/leases") {
				return nil // a semaphore counts all children, and the deletion may fail
			}
			note, err := operator.Create(ctx, dir+"/note-", nil, framework.Sequential())
			if err != nil {
				return err
			}
			return operator.Delete(ctx, note, framework.Guaranteed())
		}),
		onDirectory("make a lock's directory anew", func(ctx context.Context, operator *framework.Client, dir string) error {
			_, err := operator.Txn(ctx, framework.OpDelete(dir, framework.AnyVersion), framework.OpCreate(dir, nil))
			return err // seldom none: it must be empty at that moment
		}),
	}
}

// operate has an operator do something to the directory of a lock, now and again within the span.
func (env *environment) operate(r *rand.Rand, span time.Duration, do func(ctx context.Context, dir string) error) {
	var dirs []string
	for _, t := range env.plan.targets {
		dirs = append(dirs, t.directories()...)
	}
	if len(dirs) == 0 {
		return
	}
	dir := dirs[r.IntN(len(dirs))]
	times := 1 + r.IntN(20)
	env.tasks.Go(func() { // ends with its context at the latest; environment.run waits for it
		ctx, cancel := context.WithTimeout(env.ctx, max(span, time.Second))
		defer cancel()
		for range times {
			if err := do(ctx, dir); err == nil {
				env.count("directories worked on", 1)
			}
			pass(upTo(r, span/time.Duration(times)))
		}
	})
}
