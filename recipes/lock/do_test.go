package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// errWork is an error of a function that works under a lock.
var errWork = errors.New("the work failed")

// releaseWait is how long Do waits for a release, as it documents.
const releaseWait = 250 * time.Millisecond

// outages are the ways in which the servers stop to answer.
var outages = map[string]func(srv *zkserver.Server){
	"servers are gone":   func(srv *zkserver.Server) { srv.Refuse(); srv.Cut() },
	"servers are silent": func(srv *zkserver.Server) { srv.Freeze() },
}

// restore ends an outage.
func restore(srv *zkserver.Server) { srv.Accept(); srv.Thaw() }

// TestDoReportsTheWork has an outage begin while fn works, which delays the release until the lease
// has ended. fn returned before that, so Do returns what fn returned, at once.
func TestDoReportsTheWork(t *testing.T) {
	t.Parallel()
	for name, outage := range outages {
		for _, timeout := range []time.Duration{6 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second} {
			for _, want := range []error{nil, errWork} {
				t.Run(fmt.Sprintf("%s/%v/%v", name, timeout, want), func(t *testing.T) {
					eachKindInVirtualTime(t, with(kinds, permits), func(t *testing.T, k kind, srv *zkserver.Server) {
						c := virtualClient(t, srv, framework.WithSessionTimeout(timeout))
						var returned time.Time
						err := lock.Do(t.Context(), k.lock(t, c, "/work"), func(context.Context, *lock.Lease) error {
							outage(srv)
							<-time.After(time.Second) // less than any lease lasts
							returned = time.Now()
							return want
						})
						if err != want { //nolint:errorlint // identity is the promise
							t.Errorf("Do: %v, want fn's %v", err, want)
						}
						if late := time.Since(returned); late > releaseWait {
							t.Errorf("Do returned %v after fn, want %v at the most", late, releaseWait)
						}
						restore(srv)
					})
				})
			}
		}
	}
}

// TestDoIsBoundedByItsContext ends Do's context while fn works in an outage.
func TestDoIsBoundedByItsContext(t *testing.T) {
	t.Parallel()
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			eachKindInVirtualTime(t, kinds, func(t *testing.T, k kind, srv *zkserver.Server) {
				c := virtualClient(t, srv, framework.WithSessionTimeout(30*time.Second))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				err := lock.Do(ctx, k.lock(t, c, "/work"), func(ctx context.Context, _ *lock.Lease) error {
					outage(srv)
					<-ctx.Done()
					return context.Cause(ctx)
				})
				if err != context.DeadlineExceeded { //nolint:errorlint // identity is the promise
					t.Errorf("Do: %v, want fn's error", err)
				}
				if took := time.Since(began); took > time.Second+releaseWait {
					t.Errorf("Do returned after %v, want %v and %v at the most", took, time.Second, releaseWait)
				}
				restore(srv)
			})
		})
	}
}

// losses are the ways in which a lease ends while its holder works.
var losses = map[string]func(t *testing.T, srv *zkserver.Server, c *framework.Client, l *lock.Lease){
	"the session expires": func(t *testing.T, srv *zkserver.Server, c *framework.Client, _ *lock.Lease) {
		must.OK(t, srv.Expire(c.Session().ID))
	},
	"the deadline passes": func(_ *testing.T, srv *zkserver.Server, _ *framework.Client, _ *lock.Lease) {
		outages["servers are gone"](srv)
	},
	"the client is closed": func(t *testing.T, _ *zkserver.Server, c *framework.Client, _ *lock.Lease) {
		must.OK(t, c.Close())
	},
	"an operator deletes the znode": func(t *testing.T, srv *zkserver.Server, _ *framework.Client, l *lock.Lease) {
		deleteNode(t, virtualClient(t, srv), firstOf(l).Node())
	},
}

// worksUntilALoss have what a function may do until its lock is lost, and what it may return then.
var worksUntilALoss = map[string]func(held context.Context, c *framework.Client, busy lock.Locker) error{
	"nothing, and notices no loss": func(context.Context, *framework.Client, lock.Locker) error {
		<-time.After(time.Minute)
		return nil
	},
	"an error of its own": func(held context.Context, _ *framework.Client, _ lock.Locker) error {
		<-held.Done()
		return errWork
	},
	"the context's error": func(held context.Context, _ *framework.Client, _ lock.Locker) error { <-held.Done(); return held.Err() },
	"the context's cause": func(held context.Context, _ *framework.Client, _ lock.Locker) error {
		<-held.Done()
		return context.Cause(held)
	},
	"a request": func(held context.Context, c *framework.Client, _ lock.Locker) error {
		<-held.Done()
		_, _, err := c.Exists(held, "/")
		return err
	},
	"an inner lock": func(held context.Context, _ *framework.Client, busy lock.Locker) error {
		return errOf(busy.Lock(held))
	},
	"an inner Do": func(held context.Context, _ *framework.Client, busy lock.Locker) error {
		return lock.Do(held, busy, func(context.Context, *lock.Lease) error { return nil })
	},
	"two, of which it has": func(held context.Context, _ *framework.Client, busy lock.Locker) error {
		return errors.Join(errOf(busy.Lock(held)), held.Err())
	},
}

// TestDoReportsALoss has the lease end while fn works, whatever fn returns and whenever it notices. The error
// matches the loss, its text has the loss once, and its type is that of a loss.
func TestDoReportsALoss(t *testing.T) {
	t.Parallel()
	for name, lose := range losses {
		for what, work := range worksUntilALoss {
			t.Run(name+", fn returns "+what, func(t *testing.T) {
				t.Parallel()
				eachKindInVirtualTime(t, kinds, func(t *testing.T, k kind, srv *zkserver.Server) {
					c := virtualClient(t, srv)
					mustLock(t, newMutex(t, virtualClient(t, srv), "/busy"))
					outer, busy := k.lock(t, c, "/outer"), newMutex(t, c, "/busy")
					ended := make(chan struct{})
					err := lock.Do(t.Context(), outer, func(held context.Context, l *lock.Lease) error {
						go func() {
							defer close(ended)
							synctest.Wait() // until the work waits
							lose(t, srv, c, l)
						}()
						return work(held, c, busy)
					})
					<-ended
					restore(srv)
					var lost *lock.LostError
					if !errors.As(err, &lost) || strings.Count(err.Error(), lock.ErrLost.Error()) != 1 ||
						zktel.ErrorType(err) != "lock_lost" {
						t.Errorf("Do: %v of the type %s, want the loss, once", err, zktel.ErrorType(err))
					}
					if name == "an operator deletes the znode" && strings.Count(err.Error(), lock.ErrNodeDeleted.Error()) != 1 {
						t.Errorf("Do: %v, want that the znode was deleted, once", err)
					}
					wantErr(t, "Do", err, lock.ErrLost)
					if what == "an error of its own" {
						wantErr(t, "Do", err, errWork)
					}
				})
			})
		}
	}
}

// TestDoReportsALossThatTheReleaseFinds deletes the znode of a hold that is too short to be watched:
// another client may have had the lock while fn worked.
func TestDoReportsALossThatTheReleaseFinds(t *testing.T) {
	t.Parallel()
	eachKindInVirtualTime(t, kinds, func(t *testing.T, k kind, srv *zkserver.Server) {
		c, operator := virtualClient(t, srv), virtualClient(t, srv)
		err := lock.Do(t.Context(), k.lock(t, c, "/work"), func(_ context.Context, l *lock.Lease) error {
			deleteNode(t, operator, firstOf(l).Node())
			return nil
		})
		wantErr(t, "Do", err, lock.ErrLost, lock.ErrNodeDeleted)
	})
}

// TestDoReportsARefusedRelease: a server refuses the deletion, so the lock stays held. Do returns
// that, together with fn's error, and it is no loss.
func TestDoReportsARefusedRelease(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		err := lock.Do(t.Context(), newMutex(t, c, "/work"), func(_ context.Context, l *lock.Lease) error {
			srv.Rules().Add(fault.Rule{Op: fault.Delete, Path: l.Node(), Action: fault.Refuse, Code: fault.NoAuth})
			return errWork
		})
		if !errors.Is(err, errWork) || !errors.Is(err, framework.ErrNoAuth) || errors.Is(err, lock.ErrLost) {
			t.Errorf("Do: %v, want fn's error and ErrNoAuth, and no loss", err)
		}
	})
}
