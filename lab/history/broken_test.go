package history_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
)

const (
	brokenPath = "/broken"
	// brokenSession is short, so that a client that is cut off loses it within the run.
	brokenSession = 4 * time.Second
	brokenRun     = 20 * time.Second
)

// elsewhere is a lease of a path that no other test locks.
type elsewhere struct{ *lock.Lease }

func (elsewhere) Path() string { return brokenPath }

// heedless is a lease that never learns of its loss.
type heedless struct{ elsewhere }

func (heedless) Err() error            { return nil }
func (heedless) Lost() <-chan struct{} { return nil }

// A lock that is broken is found out, by the check that is for it; one that is whole
// passes the same run.
func TestBrokenLocksAreFound(t *testing.T) {
	t.Parallel()
	one := func(string) string { return brokenPath }
	for _, c := range []struct {
		name             string
		path             func(client string) string
		wrap             func(*lock.Lease) history.Lease
		wantOK, wantLate bool
	}{
		{"is whole", one, func(l *lock.Lease) history.Lease { return l }, true, false},
		{"excludes nobody", func(client string) string { return brokenPath + "/" + client },
			func(l *lock.Lease) history.Lease { return elsewhere{l} }, false, true},
		{"ignores its loss", one, func(l *lock.Lease) history.Lease { return heedless{elsewhere{l}} }, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				h := contend(t, env, c.path, c.wrap)
				verdicts := must.Get(h.Check(checkLimit))(t)
				if len(verdicts) != 1 || verdicts[0].OK() != c.wantOK {
					t.Errorf("%v; want OK %v", verdicts, c.wantOK)
				}
				s := h.LossReport()
				if got := len(s.Faults) > 0; got != c.wantLate {
					t.Errorf("loss before succession: faults %q; want some: %v", s.Faults, c.wantLate)
				}
				if c.wantOK && (s.Losses == 0 || s.Succeeded == 0 || s.MinGap <= 0) {
					t.Errorf("succession %+v; want losses, and successors later", s)
				}
			}, zkenv.Only("virtual time", zkenv.Embedded))
		})
	}
}

// look is how often a holder looks at its lease.
const look = 10 * time.Millisecond

// contend has three clients lock, look at the lease for a while, and release, until the run ends. One of them is
// cut off whenever it has the lock, for longer than its session lasts. Leases are passed through wrap.
func contend(t *testing.T, env *zkenv.Env, path func(client string) string, wrap func(*lock.Lease) history.Lease) *history.History {
	t.Helper()
	records := make(chan history.Record, 1<<16)
	ctx, cancel := context.WithTimeout(t.Context(), brokenRun)
	defer cancel()
	var workers sync.WaitGroup
	start := func(name string, c *framework.Client, hold time.Duration, granted func()) {
		m := must.Get(lock.NewMutex(c, path(name)))(t)
		e := history.Entry{Model: history.Mutex(), Group: brokenPath, Owner: name, Session: func() int64 { return c.Session().ID }}
		recorder := history.NewRecorder(name, func() int64 { return time.Now().UnixNano() }, func(r history.Record) { records <- r })
		workers.Go(func() {
			for ctx.Err() == nil {
				h, err := recorder.Lock(ctx, e, func(ctx context.Context) (history.Lease, error) {
					l, err := m.Lock(ctx)
					return wrap(l), err
				})
				if err != nil {
					continue
				}
				granted()
				for n := hold / look; n > 0 && ctx.Err() == nil && h.Check() == nil; n-- {
					<-time.After(look)
				}
				// The release of a lost lease says so; a deletion that waits for a connection goes on by itself.
				release, cancel := context.WithTimeout(context.WithoutCancel(ctx), look)
				if err := h.Release(release); err != nil && !errors.Is(err, lock.ErrLost) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("release: %v", err)
				}
				cancel()
			}
		})
	}
	session, route := framework.WithSessionTimeout(brokenSession), env.Route(t)
	start("cut off", route.Client(t, session), 2*brokenSession, func() {
		route.Blackhole(zkproxy.Both)
		time.AfterFunc(3*brokenSession/2, route.Heal)
	})
	for _, name := range []string{"one", "other"} {
		start(name, env.Client(t, session), time.Second, func() {})
	}
	workers.Wait()
	var all []history.Record
	for len(records) > 0 {
		all = append(all, <-records)
	}
	return must.Get(history.Assemble(all))(t)
}
