package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
)

// TestADeletedZnodeIsNotPassedOn has an operator delete the holder's znode, and the
// holder release while it still looks what has become of it.
func TestADeletedZnodeIsNotPassedOn(t *testing.T) {
	t.Parallel()
	relayed(t, 10, func(t relayTest) {
		held := mustLock(t, t.m)
		await(time.Second) // by then it is watched
		elsewhere := t.elsewhere()
		queued := t.lineUp(1, t.m)[0]
		look := t.srv.Rules().Add(fault.Rule{Op: fault.GetData, Path: held.Node(), Action: fault.HoldReply})
		if err := virtualClient(t, t.srv).Delete(t.Context(), held.Node()); err != nil {
			t.Fatal(err)
		}
		theirs := t.has(elsewhere, "the one elsewhere")
		go func() { _ = held.Release(t.Context()) }()
		t.waits(queued, "who is behind the one elsewhere")
		look.Release()
		t.waits(queued, "who is behind the one elsewhere")
		mustRelease(t, theirs)
		mustRelease(t, t.has(queued, "the one here"))
		t.nothingIsLeft()
	})
}

// TestARelayedLockKeepsToItsView: a lease of one view of the client means its paths.
func TestARelayedLockKeepsToItsView(t *testing.T) {
	t.Parallel()
	relayed(t, 10, func(t relayTest) {
		view, err := t.c.Namespace(relayPath[1:])
		if err != nil {
			t.Fatal(err)
		}
		const path = relayPath + "/below"
		held := mustLock(t, newMutex(t, t.c, path, lock.WithLocalHandoff(t.max)))
		queued := t.lineUp(1, newMutex(t, view, "/below", lock.WithLocalHandoff(t.max)))[0]
		mustRelease(t, held)
		next := t.has(queued, "the next one")
		if _, err := view.Txn(t.Context(), next.Guard()); err != nil {
			t.Errorf("the guard of who has the lock, %s: %v", next.Node(), err)
		}
		mustRelease(t, next)
	})
}

// TestAMultiGivesUpATurn has a Multi take over, from another goroutine of its owner's,
// an attempt that has its turn, and then leave its queue, since it has to wait for an
// earlier member.
func TestAMultiGivesUpATurn(t *testing.T) {
	t.Parallel()
	relayed(t, 10, func(t relayTest) {
		const early = "/earlier"
		theirs := virtualClient(t, t.srv)
		earlier, later := mustLock(t, newMutex(t, theirs, early)), mustLock(t, newMutex(t, theirs, relayPath))
		multi := newMulti(t, newMutex(t, t.c, early), t.m)
		owned := lock.ContextWithOwner(t.Context(), lock.NewOwner("one"))
		first, stop := context.WithCancel(owned)
		second, leave := context.WithCancel(owned)
		both := make(chan result, 1)
		go func() {
			_, err := t.m.Lock(first)
			leave()
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			l, err := multi.Lock(owned) // before the second has noticed that it may take over
			both <- result{lease: l, err: err}
		}()
		synctest.Wait()
		joined := lockLater(second, t.m)
		synctest.Wait()
		stop()
		if got := <-joined; !errors.Is(got.err, context.Canceled) {
			t.Errorf("who was told to leave: %+v", got)
		}
		synctest.Wait()
		mustRelease(t, later)
		mustRelease(t, mustLock(t, t.m))
		mustRelease(t, earlier)
		mustRelease(t, t.has(both, "the Multi"))
		t.nothingIsLeft()
	})
}

// TestAnOutageIsNotPassedOn to somebody who is to give the lock up at the first one.
func TestAnOutageIsNotPassedOn(t *testing.T) {
	t.Parallel()
	relayed(t, 10, func(t relayTest) {
		held := mustLock(t, t.m)
		careful := newMutex(t, t.c, relayPath, lock.WithLocalHandoff(t.max), lock.WithLossPolicy(lock.OnSuspend))
		queued := t.lineUp(1, careful)[0]
		t.srv.Refuse()
		t.srv.Cut()
		for t.c.State() == framework.Connected {
			await(time.Millisecond)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := held.Release(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		t.waits(queued, "who is not to have the lock without a connection")
		t.srv.Accept()
		mustRelease(t, receive(t, queued, "the lock when there is a connection").lease)
		t.nothingIsLeft()
	})
}
