package barrier_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

const gate = "/gate"

// enter calls Enter on a goroutine of its own, and returns when that waits.
func enter(ctx context.Context, t *testing.T, c *framework.Client) <-chan recipetest.Outcome {
	t.Helper()
	done := recipetest.Later(ctx, newDouble(t, c, gate, 2).Enter)
	synctest.Wait()
	return done
}

// The context of a member ends at each of its requests. No znode of it is left, so it is not counted.
func TestAMemberThatIsCancelledLeavesNothing(t *testing.T) {
	for _, op := range []fault.Op{fault.Create, fault.GetChildren, fault.Exists} {
		for _, action := range []fault.Action{fault.HoldRequest, fault.HoldReply} {
			t.Run(op.String()+" "+action.String(), func(t *testing.T) {
				recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
					c := recipetest.ClientOf(t, srv)
					held := srv.Rules().Add(fault.Rule{Op: op, Path: gate + "**", Action: action})
					ctx, cancel := context.WithCancel(t.Context())
					member := enter(ctx, t, recipetest.ClientOf(t, srv))
					<-held.Hit()
					cancel()
					if got := <-member; !errors.Is(got.Err, context.Canceled) || got.Lease != nil {
						t.Errorf("Enter: %v, %v; want Canceled", got.Lease, got.Err)
					}
					held.Release()
					<-time.After(time.Minute) // the deletion goes on in the background
					if names := recipetest.Children(t, c, gate); len(names) > 0 {
						t.Errorf("znodes %v are left", names)
					}
				})
			})
		}
	}
}

// A member withdraws at the very moment when its client learns that the barrier's directory is missing, and
// enters again at once. The create that follows the directory's may be sent behind whatever the next Enter
// sends first. The member is counted once, so it does not get in alone.
func TestAMemberThatWithdrawsAsItsDirectoryIsMadeIsCountedOnce(t *testing.T) {
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const latency = 10 * time.Millisecond
		c := recipetest.ClientOf(t, srv)
		for range 100 {
			missing := srv.Rules().Add(fault.Rule{Op: fault.Create, Path: gate + "/*", Action: fault.DelayReply, Delay: latency, Times: 1})
			short, cancel := context.WithTimeout(t.Context(), latency)
			<-enter(short, t, c)
			cancel()
			long, cancel := context.WithTimeout(t.Context(), time.Second)
			if got := <-enter(long, t, c); !errors.Is(got.Err, context.DeadlineExceeded) {
				t.Fatalf("Enter: %v, %v; want DeadlineExceeded", got.Lease, got.Err)
			}
			cancel()
			missing.Remove()
			<-time.After(time.Minute)
			if names := recipetest.Children(t, c, gate); len(names) > 0 {
				t.Fatalf("znodes %v are left", names)
			}
			must.OK(t, c.Delete(t.Context(), gate, framework.Idempotent()))
		}
	})
}

// A reply is lost at each request of a member: it enters once, and is counted once.
func TestAMemberWhoseReplyIsLostIsCountedOnce(t *testing.T) {
	for _, op := range []fault.Op{fault.Create, fault.GetChildren, fault.Exists} {
		t.Run(op.String(), func(t *testing.T) {
			recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
				c := recipetest.ClientOf(t, srv)
				srv.Rules().Add(fault.Rule{Op: op, Path: gate + "**", Action: fault.DropReply})
				first := enter(t.Context(), t, recipetest.ClientOf(t, srv))
				<-time.After(5 * time.Second)
				if names := recipetest.Children(t, c, gate); len(names) != 1 || len(first) > 0 {
					t.Fatalf("znodes %v after one member came, %d let in; want one znode, none in", names, len(first))
				}
				recipetest.Granted(t, enter(t.Context(), t, recipetest.ClientOf(t, srv)))
				recipetest.Granted(t, first)
				if names := recipetest.Children(t, c, gate); len(names) != 3 {
					t.Errorf("znodes %v, want two members and ready", names)
				}
			})
		})
	}
}

// An operator deletes the znode of a waiting member. It enters again, and is let in with the next one.
func TestAMemberWhoseZnodeIsDeletedEntersAgain(t *testing.T) {
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := recipetest.ClientOf(t, srv)
		first := enter(t.Context(), t, recipetest.ClientOf(t, srv))
		before := recipetest.Children(t, c, gate)
		must.OK(t, c.Delete(t.Context(), gate+"/"+before[0]))
		<-time.After(10 * time.Minute) // it looks again at some time
		after := recipetest.Children(t, c, gate)
		if len(after) != 1 || after[0] == before[0] || len(first) > 0 {
			t.Fatalf("znodes %v, before %v, %d let in; want another znode, none in", after, before, len(first))
		}
		recipetest.Granted(t, enter(t.Context(), t, recipetest.ClientOf(t, srv)))
		recipetest.Granted(t, first)
	})
}

// The client is closed while members wait in it.
func TestCloseEndsTheWaits(t *testing.T) {
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := recipetest.ClientOf(t, srv)
		closing := recipetest.ClientOf(t, srv)
		waiting := enter(t.Context(), t, closing)
		must.OK(t, closing.Close())
		if got := <-waiting; !errors.Is(got.Err, framework.ErrClosed) {
			t.Errorf("Enter: %v, want ErrClosed", got.Err)
		}
		synctest.Wait()
		if names := recipetest.Children(t, c, gate); len(names) > 0 {
			t.Errorf("znodes %v are left", names)
		}
	})
}

// Contexts that end together with the entry: the member is in, or leaves nothing.
func TestAnEntryThatEndsWithItsContext(t *testing.T) {
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := recipetest.ClientOf(t, srv)
		withdrew := 0
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			other, end := context.WithCancel(t.Context())
			first := enter(ctx, t, c)
			second := make(chan (<-chan recipetest.Outcome), 1)
			go cancel()
			go func() { second <- enter(other, t, c) }()
			<-time.After(time.Second)
			got := <-first
			members := slices.DeleteFunc(recipetest.Children(t, c, gate), func(name string) bool { return name == "ready" })
			if got.Err == nil {
				must.OK(t, got.Lease.Release(t.Context()))
			} else if withdrew++; len(members) != 1 {
				t.Fatalf("znodes %v, want that of the other member", members)
			}
			end()
			if late := <-<-second; late.Err == nil {
				must.OK(t, late.Lease.Release(t.Context()))
			}
			if err := c.DeleteTree(t.Context(), gate); err != nil && !errors.Is(err, framework.ErrNoNode) {
				t.Fatal(err)
			}
		}
		if withdrew == 0 {
			t.Error("no context ended before the entry: the test shows less than it should")
		}
	})
}
