package framework_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
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
