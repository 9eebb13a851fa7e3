package framework_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

const (
	connecting = framework.Connecting
	connected  = framework.Connected
	suspended  = framework.Suspended
	lost       = framework.Lost
	closed     = framework.Closed
)

func TestStatesAreSeenInOrder(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	var seen trail
	c := newClient(t, proxy.Addr(), framework.WithSessionTimeout(6*time.Second), framework.WithStateListener(seen.add))
	seen.await(t, connecting, connected)
	first := c.Session().ID
	proxy.Cut()
	seen.await(t, connecting, connected, suspended, connected)
	wantEqual(t, "session after the connection was cut", c.Session().ID, first)
	disconnect(proxy)
	seen.await(t, connecting, connected, suspended, connected, suspended, lost)
	wantErr(t, "cause of Lost", seen.last(lost).Cause, framework.ErrSessionDeadline)
	if seen.last(suspended).Cause == nil {
		t.Error("Suspended has no cause")
	}
	proxy.Heal()
	seen.await(t, connecting, connected, suspended, connected, suspended, lost, connected)
	must.OK(t, c.Close())
	seen.await(t, connecting, connected, suspended, connected, suspended, lost, connected, closed)

	changes := seen.list()
	for i, change := range changes {
		if i > 0 && change.From != changes[i-1].To {
			t.Errorf("change %d is %v, after one to %v", i, change, changes[i-1].To)
		}
		want := first
		switch {
		case i == 0:
			want = 0
		case i >= 6:
			want = c.Session().ID
		}
		if change.Session != want {
			t.Errorf("change %d is %v, want session %#x", i, change, want)
		}
	}
	if c.Session().ID == first {
		t.Error("the session after Lost is the one before")
	}
}

func TestALateSubscriberLearnsThePresentStateFirst(t *testing.T) {
	t.Parallel()
	c := connect(t, zktest.Shared(t).Addr())
	var seen, removed, late trail
	c.OnState(seen.add)
	remove := c.OnState(removed.add)
	removed.await(t, connected)
	remove()
	must.OK(t, c.Close())
	seen.await(t, connected, closed)
	if first := seen.list()[0]; first.From != 0 || first.Session == 0 {
		t.Errorf("the first change is %v, want From to be 0 and the session", first)
	}
	c.OnState(late.add)
	late.await(t, closed)
	wantList(t, "states seen by the removed listener", removed.states(), []framework.State{connected})
}

func TestStatesEndsWithTheClient(t *testing.T) {
	t.Parallel()
	c := connect(t, zktest.Shared(t).Addr())
	var got []framework.State
	for change := range c.States(t.Context()) {
		got = append(got, change.To)
		if change.To == connected {
			go c.Close() // the test's clean-up waits for it too
		}
	}
	wantList(t, "states", got, []framework.State{connected, closed})
}

func TestNothingOfAnExpiredSessionRunsInTheNext(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	proxy := zkproxy.Run(t, server.Addr())
	var seen trail
	var g gate
	c := connect(t, proxy.Addr(), framework.WithSessionTimeout(20*time.Second), framework.WithDialer(g.dial), framework.WithStateListener(seen.add))
	dir := fresh(t)
	mustCreate(t, c, dir+"/keep", "")
	hold := mustHold(t, c)
	id, password := framework.SessionSecret(c)
	bound := c.InSession(id)

	g.shut()
	held := proxy.Rules().Add(fault.Rule{Session: id, Op: fault.Create, Action: fault.HoldRequest})
	var wg sync.WaitGroup
	create := func() {
		_, err := bound.Create(t.Context(), dir+"/node-", nil, framework.Ephemeral(), framework.Sequential())
		if !errors.Is(err, framework.ErrSessionEnded) && !errors.Is(err, framework.ErrUnknownOutcome) {
			t.Errorf("create in an expired session: %v", err)
		}
	}
	for range 20 { // more than the wire client's queue takes
		wg.Go(create)
	}
	await(t, held.Hit(), "the first create")
	proxy.Cut()
	held.Release()
	for range 20 {
		wg.Go(create)
	}
	must.OK(t, zktest.KillSession(t.Context(), server.Addr(), id, password))
	g.open()
	wg.Wait()
	await(t, hold.Lost(), "loss")
	wantErr(t, "cause of the loss", hold.Err(), framework.ErrSessionExpired)
	seen.await(t, connecting, connected, suspended, lost, connected)
	wantList(t, "children of the expired session and others", children(t, c, dir), []string{"keep"})
	wantErr(t, "get in an expired session", last(bound.Get(t.Context(), dir)), framework.ErrSessionEnded)
}
