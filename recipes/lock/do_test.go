package lock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
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
					eachKindInVirtualTime(t, kinds, func(t *testing.T, k kind, srv *zkserver.Server) {
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

// TestDoReturnsFnsError compares Do's error with fn's: a release that succeeds adds nothing.
func TestDoReturnsFnsError(t *testing.T) {
	t.Parallel()
	eachKindInVirtualTime(t, kinds, func(t *testing.T, k kind, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		l := k.lock(t, c, "/work")
		err := lock.Do(t.Context(), l, func(context.Context, *lock.Lease) error { return errWork })
		if err != errWork { //nolint:errorlint // identity is the promise
			t.Errorf("Do: %#v, want fn's error itself", err)
		}
		synctest.Wait()
		mustRelease(t, mustTry(t, l))
	})
}

// TestDoReportsALoss has the lease end while fn works, whatever fn returns and whenever it notices.
func TestDoReportsALoss(t *testing.T) {
	t.Parallel()
	losses := map[string]func(*testing.T, *zkserver.Server, *framework.Client, *lock.Lease){
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
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			eachKind(t, kinds, func(t *testing.T, k kind) {
				returns := map[string]func(ctx context.Context) error{
					"nil":                      func(context.Context) error { return nil },
					"an error of its own":      func(context.Context) error { return errWork },
					"the cause of its context": context.Cause,
				}
				for what, result := range returns {
					synctest.Test(t, func(t *testing.T) {
						srv := virtualServer(t)
						c := virtualClient(t, srv)
						err := lock.Do(t.Context(), k.lock(t, c, "/work"), func(ctx context.Context, l *lock.Lease) error {
							lose(t, srv, c, l)
							<-ctx.Done()
							<-time.After(time.Minute) // it ignores the loss
							return result(ctx)
						})
						var lost *lock.LostError
						if !errors.Is(err, lock.ErrLost) || !errors.As(err, &lost) {
							t.Errorf("fn returned %s: Do: %v, want ErrLost", what, err)
						}
						if what == "an error of its own" && !errors.Is(err, errWork) {
							t.Errorf("Do: %v, want fn's error, too", err)
						}
						restore(srv)
					})
				}
			})
		})
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
		if !errors.Is(err, lock.ErrLost) || !errors.Is(err, lock.ErrNodeDeleted) {
			t.Errorf("Do: %v, want ErrLost and ErrNodeDeleted", err)
		}
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
