package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/worlds"
	"github.com/docent-go/docent/testing/zktest"
)

// TestOwnerlessNoGhostAfterCancelAtAnyRequest withholds each request and each
// reply of an acquire in turn, ends ctx at that moment, and lets go.
func TestOwnerlessNoGhostAfterCancelAtAnyRequest(t *testing.T) {
	t.Parallel()
	for _, action := range []fault.Action{fault.HoldRequest, fault.HoldReply, fault.DropReply, fault.CutBefore} {
		t.Run(action.String(), func(t *testing.T) {
			t.Parallel()
			dir := "/ownerless-ghost/" + action.String()
			forOwnerless(t, dir, func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
				observer := w.Client(t)
				for n := range kind.free {
					ownerlessFault{w, kind, observer, fmt.Sprint(path, "-free-", n), fault.Rule{Action: action, Skip: n}}.cancel(t, false)
				}
				for n := range kind.waiting {
					ownerlessFault{w, kind, observer, fmt.Sprint(path, "-held-", n), fault.Rule{Action: action, Skip: n}}.cancel(t, true)
				}
			})
		})
	}
}

// An ownerlessFault is what befalls an acquire of a lock of one kind at a path.
type ownerlessFault struct {
	world    *worlds.World
	kind     ownerlessKind
	observer *framework.Client
	path     string
	rule     fault.Rule // without its path
}

// cancel ends the context of an acquire at the fault. Where it is contended,
// somebody else has the lock then.
func (f ownerlessFault) cancel(t *testing.T, contended bool) {
	t.Helper()
	kind, observer, path, rule := f.kind, f.observer, f.path, f.rule
	kind.createDirs(t, observer, path)
	others := 0
	var held *lock.Lease
	if contended {
		held, others = mustLock(t, kind.lock(t, observer, path)), 1
		awaitEphemerals(t, observer, path, 1)
	}
	c, way := onWay(t, f.world)
	l := kind.lock(t, c, path)
	rule.Path = path + kind.requests
	stuck := way.Rules().Add(rule)
	defer stuck.Release()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := lockLater(ctx, l)
	receive(t, stuck.Hit(), rule.String())
	cancel()
	got := receive(t, done, "Lock's return after its context ended")
	if got.err != nil && !errors.Is(got.err, context.Canceled) {
		t.Errorf("%v: error %v, want one that matches context.Canceled", rule, got.err)
	}
	stuck.Release()
	if got.err == nil {
		mustRelease(t, got.lease)
	}
	awaitEphemerals(t, observer, path, others)
	zktest.Eventually(t, generous, "the clean-up is done", func() bool { return c.PendingDeletes() == 0 })
	awaitEphemerals(t, observer, path, others)
	if contended {
		mustRelease(t, held)
	}
	mustRelease(t, mustLock(t, l)) // by the same client again
}

// TestOwnerlessLostReplies loses the reply to each request of a lock and a
// release in turn, and cuts the connection before each.
func TestOwnerlessLostReplies(t *testing.T) {
	t.Parallel()
	for _, action := range []fault.Action{fault.DropReply, fault.CutBefore} {
		t.Run(action.String(), func(t *testing.T) {
			t.Parallel()
			dir := "/ownerless-lost/" + action.String()
			forOwnerless(t, dir, func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
				observer := w.Client(t)
				for n := range kind.cycle {
					for _, bare := range []bool{false, true} {
						path := fmt.Sprintf("%s-%d-%v", path, n, bare)
						ownerlessFault{w, kind, observer, path, fault.Rule{Action: action, Skip: n}}.lose(t, bare)
					}
				}
			})
		})
	}
}

// lose locks and releases, with the fault on the way, without metadata where it is bare.
func (f ownerlessFault) lose(t *testing.T, bare bool) {
	t.Helper()
	kind, observer, path, rule := f.kind, f.observer, f.path, f.rule
	kind.createDirs(t, observer, path)
	c, way := onWay(t, f.world)
	session := c.Session().ID
	var opts []lock.Option
	if bare {
		opts = append(opts, lock.WithoutMetadata())
	}
	l := kind.lock(t, c, path, opts...)
	rule.Path = path + kind.requests
	lost := way.Rules().Add(rule)
	lease := mustLock(t, l)
	mustHold(t, observer, lease)
	awaitEphemerals(t, observer, path, 1)
	mustRelease(t, lease)
	awaitEphemerals(t, observer, path, 0)
	receive(t, lost.Hit(), rule.String())
	if now := c.Session().ID; now != session {
		t.Errorf("%v: session %#x, before %#x; want the same", rule, now, session)
	}
}

func TestOwnerlessBoundedCalls(t *testing.T) {
	t.Parallel()
	forOwnerless(t, "/ownerless/bounded", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		c := w.Client(t)
		held := mustLock(t, kind.lock(t, c, path+"-held"))
		free := kind.lock(t, c, path+"-free")
		for _, member := range w.Members() {
			member.Freeze(t)
		}
		calls := map[string]func(context.Context) error{
			"Lock":         func(ctx context.Context) error { _, err := free.Lock(ctx); return err },
			"TryLock":      func(ctx context.Context) error { _, err := free.TryLock(ctx); return err },
			"Participants": func(ctx context.Context) error { _, err := free.Participants(ctx); return err },
			"Release":      held.Release,
		}
		for name, call := range calls {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			start := time.Now()
			err := call(ctx)
			cancel()
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 5*time.Second {
				t.Errorf("%s: %v after %v, want an error that matches DeadlineExceeded after 200ms", name, err, took)
			}
		}
		for _, member := range w.Members() {
			member.Thaw(t)
		}
		awaitEphemerals(t, c, path+"-held", 0)
		awaitEphemerals(t, c, path+"-free", 0)
	}, worlds.Breakable(), worlds.Only("servers of its own take seconds to start", worlds.Embedded, worlds.EmbeddedEnsemble, worlds.Standalone))
}

// TestOwnerlessDirectoriesVanish removes the empty directories just before each
// create of an acquire, as the server does when nobody has used them for a while.
func TestOwnerlessDirectoriesVanish(t *testing.T) {
	t.Parallel()
	forOwnerless(t, "/ownerless-vanished", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		operator := w.Client(t)
		for n := range 1 + len(kind.dirs)/2 {
			path := fmt.Sprint(path, n, "/lock")
			kind.createDirs(t, operator, path)
			c, way := onWay(t, w)
			stuck := way.Rules().Add(fault.Rule{Op: fault.Create, Path: path + kind.requests, Action: fault.HoldRequest, Skip: n})
			done := lockLater(t.Context(), kind.lock(t, c, path))
			receive(t, stuck.Hit(), "the create")
			removeEmpty(t, operator, path)
			stuck.Release()
			got := receive(t, done, "the lock")
			if got.err != nil {
				t.Fatal(got.err)
			}
			mustHold(t, operator, got.lease)
			mustRelease(t, got.lease)
		}
	})
}

// removeEmpty removes a lock's directories that are empty, from below, and fails
// the test if none is.
func removeEmpty(t testing.TB, c *framework.Client, path string) {
	t.Helper()
	removed := 0
	parent, _ := framework.SplitPath(path)
	for _, dir := range []string{path + "/leases", path + "/locks", path, parent} {
		err := c.Delete(t.Context(), dir)
		switch {
		case err == nil:
			removed++
		case !errors.Is(err, framework.ErrNoNode) && !errors.Is(err, framework.ErrNotEmpty):
			t.Fatal(err)
		}
	}
	if removed == 0 {
		t.Fatalf("no directory of %s was empty: nothing is tested", path)
	}
}

// TestOwnerlessDirectoriesAreContainers waits until the server has removed them. An exclusive lock
// leaves its epoch, and nothing else, behind.
func TestOwnerlessDirectoriesAreContainers(t *testing.T) {
	t.Parallel()
	forOwnerless(t, "/ownerless-reaped", func(t *testing.T, w *worlds.World, kind ownerlessKind, path string) {
		c := w.Client(t)
		l := kind.lock(t, c, path+"/lock")
		for range 2 {
			mustRelease(t, mustLock(t, l))
			if kind.name == "unfair mutex" {
				left, _, err := c.Children(t.Context(), path)
				if err != nil || !slices.Equal(left, []string{"lock.epoch"}) {
					t.Errorf("left behind: %q, %v; want the epoch", left, err)
				}
				continue
			}
			zktest.Eventually(t, generous, "the directories are gone", func() bool {
				_, ok, err := c.Exists(t.Context(), "/ownerless-reaped/"+kind.name)
				return err == nil && !ok
			})
		}
	})
}
