package framework_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// fill creates 10,000 znodes below /top, in as many directories.
func fill(t testing.TB, c *framework.Client, dirs int) {
	t.Helper()
	for i := range dirs {
		mustCreate(t, c, fmt.Sprintf("/top/%d", i), "")
		ops := make([]framework.TxnOp, 10_000/dirs)
		for j := range ops {
			ops[j] = framework.OpCreate(fmt.Sprintf("/top/%d/%d", i, j), nil)
		}
		must.Get(c.Txn(t.Context(), ops...))(t)
	}
}

// One by one, 10,000 znodes take 10,005 requests in one directory, and 10,303 in a hundred, each of which
// waits for the one before.
func TestDeleteTree_in_few_requests(t *testing.T) {
	for dirs, most := range map[int]int{1: 100, 100: 600} {
		t.Run(fmt.Sprint(dirs, " directories"), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, env *zkenv.Env) {
				route := env.Route(t)
				c := route.Client(t)
				fill(t, c, dirs)
				requests := func() int { return route.Count(fault.Delete, fault.GetChildren, fault.Multi, fault.Exists, fault.Sync) }
				before := requests()
				check(t, c.DeleteTree(t.Context(), "/top"))
				wantExists(t, c, "/top", false)
				n := requests() - before
				t.Logf("10,000 znodes in %d directories: %d requests", dirs, n)
				if n > most {
					t.Errorf("%d requests, want %d at most", n, most)
				}
			})
		})
	}
}

// A directory into which another client creates faster than DeleteTree lists and deletes.
func TestDeleteTree_gives_up_with_what_is_left(t *testing.T) {
	inBubble(t, func(t *testing.T, env *zkenv.Env) {
		route, other := env.Route(t), env.Client(t)
		c := route.Client(t)
		mustCreate(t, other, "/top/a", "")
		mustCreate(t, other, "/top/b", "")
		ctx, cancel := context.WithCancel(t.Context())
		creating := background(func() error {
			for i := 0; ctx.Err() == nil; i++ {
				held := route.Rules().Add(fault.Rule{Op: fault.Multi, Action: fault.HoldRequest})
				select {
				case <-held.Hit():
					created := func(side string) framework.TxnOp { return framework.OpCreate(fmt.Sprint("/top/new-", i, side), nil) }
					_, _ = other.Txn(ctx, created("a"), created("b"))
					held.Release()
				case <-ctx.Done():
				}
			}
			return nil
		})
		err := c.DeleteTree(t.Context(), "/top")
		cancel()
		must.OK(t, <-creating)
		wantErr(t, "DeleteTree", err, framework.ErrNotEmpty)
		wantText(t, err, " children that others have created, such as new-")
	})
}

// The session of a transaction ends before its reply. Whether it was applied, or will be, is not known in the next
// session, so DeleteTree doesn't go on as if it were over.
func TestDeleteTree_whose_session_ends(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		check(t, c.AwaitConnected(t.Context()))
		mustCreate(t, c, "/top", "")
		mustCreate(t, c, "/top/a", "")
		mustCreate(t, c, "/top/b", "")
		held := srv.Rules().Add(fault.Rule{Op: fault.Multi, Action: fault.HoldReply})
		deleting := background(func() error { return c.DeleteTree(t.Context(), "/top") })
		must.Receive(t, held.Hit(), "the transaction")
		held.Remove()
		check(t, srv.Expire(c.Session().ID))
		wantErr(t, "DeleteTree", must.Receive(t, deleting, "its end"), framework.ErrUnknownOutcome)
	})
}

// Another client creates a child before each deletion, and deletes it before each listing.
func TestDeleteTree_gives_up_where_the_listing_is_empty(t *testing.T) {
	inBubble(t, func(t *testing.T, env *zkenv.Env) {
		route, other := env.Route(t), env.Client(t)
		c := route.Client(t)
		mustCreate(t, other, "/top", "")
		at := func(op fault.Op, change func()) {
			held := route.Rules().Add(fault.Rule{Op: op, Action: fault.HoldRequest})
			go func() {
				for {
					select {
					case <-held.Hit():
					case <-t.Context().Done():
						return
					}
					change()
					now := held
					held = route.Rules().Add(fault.Rule{Op: op, Action: fault.HoldRequest})
					now.Release()
				}
			}()
		}
		at(fault.Delete, func() { _, _ = other.Create(t.Context(), "/top/a", nil) })
		at(fault.GetChildren, func() { _ = other.Delete(t.Context(), "/top/a") })
		err := c.DeleteTree(within(t, 10*time.Minute), "/top")
		wantErr(t, "DeleteTree", err, framework.ErrNotEmpty)
		wantText(t, err, "other clients create children of /top and delete them")
	})
}
