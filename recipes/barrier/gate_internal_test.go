package barrier

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

const path = "/gate"

// A fixture is a gate of two members on an embedded server, in virtual time.
type fixture struct {
	server *zkserver.Server
	client *framework.Client // of no member
}

// virtually runs the body. At the end no goroutine may be left.
func virtually(t *testing.T, body func(t *testing.T, f *fixture)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{server: zkserver.Run(t, zkenv.DrawVersion(t)...)}
		f.client = f.newClient(t)
		body(t, f)
	})
}

func (f *fixture) newClient(t *testing.T) *framework.Client {
	t.Helper()
	c := must.Get(framework.NewClient(f.server.Addr(), framework.WithDialer(f.server.Dial)))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A result is that of an enter on another goroutine.
type result struct {
	grant *waitqueue.Grant
	err   error
}

// enter calls gate.enter on a goroutine of its own, and returns when that waits.
func enter(ctx context.Context, c *framework.Client) <-chan result {
	g := &gate{client: c, path: path, members: 2}
	done := make(chan result, 1)
	tel := telemetry.Of(c, telemetry.TypeDouble, "", path)
	go func() {
		ctx, seen := tel.Begin(ctx)
		grant, err := g.enter(ctx, seen)
		done <- result{grant, err}
	}()
	synctest.Wait()
	return done
}

// in waits for the place of enter.
func in(t *testing.T, done <-chan result) {
	t.Helper()
	got := <-done
	must.OK(t, got.err)
	got.grant.Session.Release()
}

// children returns the names at the gate, in order.
func (f *fixture) children(t *testing.T) []string {
	t.Helper()
	names, _, err := f.client.Children(t.Context(), path)
	if err != nil && !errors.Is(err, framework.ErrNoNode) {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// The context of a member ends at each of its requests. No znode of it is left, so it is not counted.
func TestAMemberThatIsCancelledLeavesNothing(t *testing.T) {
	for _, op := range []fault.Op{fault.Create, fault.GetChildren, fault.Exists} {
		for _, action := range []fault.Action{fault.HoldRequest, fault.HoldReply} {
			t.Run(op.String()+" "+action.String(), func(t *testing.T) {
				virtually(t, func(t *testing.T, f *fixture) {
					held := f.server.Rules().Add(fault.Rule{Op: op, Path: path + "**", Action: action})
					ctx, cancel := context.WithCancel(t.Context())
					member := enter(ctx, f.newClient(t))
					<-held.Hit()
					cancel()
					if got := <-member; !errors.Is(got.err, context.Canceled) || got.grant != nil {
						t.Errorf("Enter: %v, %v; want Canceled", got.grant, got.err)
					}
					held.Release()
					<-time.After(time.Minute) // the deletion goes on in the background
					if names := f.children(t); len(names) > 0 {
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
	virtually(t, func(t *testing.T, f *fixture) {
		const latency = 10 * time.Millisecond
		c := f.newClient(t)
		for range 100 {
			missing := f.server.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.DelayReply, Delay: latency, Times: 1})
			short, cancel := context.WithTimeout(t.Context(), latency)
			<-enter(short, c)
			cancel()
			long, cancel := context.WithTimeout(t.Context(), time.Second)
			if got := <-enter(long, c); !errors.Is(got.err, context.DeadlineExceeded) {
				t.Fatalf("Enter: %v, %v; want DeadlineExceeded", got.grant, got.err)
			}
			cancel()
			missing.Remove()
			<-time.After(time.Minute)
			if names := f.children(t); len(names) > 0 {
				t.Fatalf("znodes %v are left", names)
			}
			must.OK(t, f.client.Delete(t.Context(), path, framework.Idempotent()))
		}
	})
}

// A reply is lost at each request of a member: it enters once, and is counted once.
func TestAMemberWhoseReplyIsLostIsCountedOnce(t *testing.T) {
	for _, op := range []fault.Op{fault.Create, fault.GetChildren, fault.Exists} {
		t.Run(op.String(), func(t *testing.T) {
			virtually(t, func(t *testing.T, f *fixture) {
				f.server.Rules().Add(fault.Rule{Op: op, Path: path + "**", Action: fault.DropReply})
				first := enter(t.Context(), f.newClient(t))
				<-time.After(5 * time.Second)
				if names := f.children(t); len(names) != 1 || len(first) > 0 {
					t.Fatalf("znodes %v after one member came, %d let in; want one znode, none in", names, len(first))
				}
				in(t, enter(t.Context(), f.newClient(t)))
				in(t, first)
				if names := f.children(t); len(names) != 3 {
					t.Errorf("znodes %v, want two members and ready", names)
				}
			})
		})
	}
}

// An operator deletes the znode of a waiting member. It enters again, and is let in with the next one.
func TestAMemberWhoseZnodeIsDeletedEntersAgain(t *testing.T) {
	virtually(t, func(t *testing.T, f *fixture) {
		first := enter(t.Context(), f.newClient(t))
		before := f.children(t)
		must.OK(t, f.client.Delete(t.Context(), path+"/"+before[0]))
		<-time.After(10 * time.Minute) // it looks again at some time
		after := f.children(t)
		if len(after) != 1 || after[0] == before[0] || len(first) > 0 {
			t.Fatalf("znodes %v, before %v, %d let in; want another znode, none in", after, before, len(first))
		}
		in(t, enter(t.Context(), f.newClient(t)))
		in(t, first)
	})
}

// The client is closed while members wait in it.
func TestCloseEndsTheWaits(t *testing.T) {
	virtually(t, func(t *testing.T, f *fixture) {
		c := f.newClient(t)
		waiting := enter(t.Context(), c)
		must.OK(t, c.Close())
		if got := <-waiting; !errors.Is(got.err, framework.ErrClosed) {
			t.Errorf("Enter: %v, want ErrClosed", got.err)
		}
		synctest.Wait()
		if names := f.children(t); len(names) > 0 {
			t.Errorf("znodes %v are left", names)
		}
	})
}

// Contexts that end together with the entry: the member is in, or leaves nothing.
func TestAnEntryThatEndsWithItsContext(t *testing.T) {
	virtually(t, func(t *testing.T, f *fixture) {
		withdrew := 0
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			other, end := context.WithCancel(t.Context())
			first := enter(ctx, f.client)
			second := make(chan (<-chan result), 1)
			go cancel()
			go func() { second <- enter(other, f.client) }()
			<-time.After(time.Second)
			got := <-first
			members := slices.DeleteFunc(f.children(t), func(name string) bool { return name == "ready" })
			if got.err == nil {
				got.grant.Session.Release()
			} else if withdrew++; len(members) != 1 {
				t.Fatalf("znodes %v, want that of the other member", members)
			}
			end()
			if late := <-<-second; late.err == nil {
				late.grant.Session.Release()
			}
			if err := f.client.DeleteTree(t.Context(), path); err != nil && !errors.Is(err, framework.ErrNoNode) {
				t.Fatal(err)
			}
		}
		if withdrew == 0 {
			t.Error("no context ended before the entry: the test shows less than it should")
		}
	})
}
