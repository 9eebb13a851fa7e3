package framework_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func TestCircuitBreaking_folds_a_flapping_connection(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	var all, folded trail
	c := connect(t, proxy.Addr(), framework.WithSessionTimeout(20*time.Second), framework.WithStateListener(all.add))
	must.Get(framework.CircuitBreaking(c, retry.Forever(time.Second), folded.add))(t)
	folded.await(t, connected)
	const flaps = 4
	for i := range flaps {
		proxy.Cut()
		zktest.Eventually(t, patience, "it reconnects", func() bool { return len(all.states()) >= 2+2*(i+1) })
	}
	folded.await(t, connected, suspended, connected)
	if n := len(all.states()); n != 2+2*flaps {
		t.Errorf("%d changes without the circuit, want %d", n, 2+2*flaps)
	}
	must.OK(t, c.Close())
	folded.await(t, connected, suspended, connected, closed)
	for i, change := range folded.list() {
		if i > 0 && change.From != folded.list()[i-1].To {
			t.Errorf("change %d is %v", i, change)
		}
	}
}

func TestCircuitBreakingPassesALossOn(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var folded, removed trail
		c := virtual(t, srv)
		must.Get(framework.CircuitBreaking(c, retry.Forever(200*time.Millisecond), folded.add))(t)
		remove := must.Get(framework.CircuitBreaking(c, retry.Never(), removed.add))(t)
		removed.await(t, connected)
		remove()
		srv.Refuse()
		srv.Cut()
		folded.await(t, connected, suspended, lost)
		srv.Accept()
		folded.await(t, connected, suspended, lost, connected)
		if got := removed.states(); !slices.Equal(got, []framework.State{connected}) {
			t.Errorf("the removed listener saw %v", got)
		}
	})
}

func TestCircuitBreaking_without_waits(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	var folded trail
	c := connect(t, proxy.Addr())
	must.Get(framework.CircuitBreaking(c, retry.Never(), folded.add))(t)
	proxy.Cut()
	folded.await(t, connected, suspended, connected)
	_, err := framework.CircuitBreaking(c, retry.Forever(0), nil)
	if err == nil || !strings.Contains(err.Error(), "wait") || !strings.Contains(err.Error(), "state listener: must not be nil") {
		t.Errorf("an invalid policy and no listener: %v", err)
	}
}

// As CircuitBreakingConnectionStateListener.testBasic and testRetryOnce: the circuit closes when
// the policy allows no further retry, in any state of the connection. It then reports the present
// state.
func TestCuratorCircuit_closes_when_its_policy_ends(t *testing.T) {
	for name, tc := range map[string]struct {
		policy retry.Policy
		want   []framework.State
	}{
		"once":    {retry.Once(2500 * time.Millisecond), []framework.State{connected, suspended, connected, suspended, connected}},
		"forever": {retry.Forever(2500 * time.Millisecond), []framework.State{connected, suspended, connected}},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				var all, folded trail
				c := virtual(t, srv, framework.WithSessionTimeout(20*time.Second), framework.WithStateListener(all.add))
				must.Get(framework.CircuitBreaking(c, tc.policy, folded.add))(t)
				const flaps = 5 // one a second, and each is over at once
				for range flaps {
					srv.Cut()
					<-time.After(time.Second)
				}
				<-time.After(time.Minute)
				if n := len(all.states()); n != 2+2*flaps {
					t.Fatalf("states %v, want %d flaps", all.states(), flaps)
				}
				folded.await(t, tc.want...)
			})
		})
	}
}

// As testSuspendedToLostRatcheting: of a long flapping there is one Suspended, and one Lost.
func TestCuratorCircuitTellsOneLoss(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var all, folded trail
		c := virtual(t, srv, framework.WithStateListener(all.add))
		must.Get(framework.CircuitBreaking(c, retry.Forever(time.Minute), folded.add))(t)
		want := []framework.State{connecting, connected}
		for range 3 {
			srv.Cut()
			want = append(want, suspended, connected)
			all.await(t, want...)
			srv.Refuse()
			srv.Cut()
			want = append(want, suspended, lost)
			all.await(t, want...)
			srv.Accept()
			want = append(want, connected)
			all.await(t, want...)
			folded.await(t, connected, suspended, lost)
		}
		<-time.After(2 * time.Minute)
		folded.await(t, connected, suspended, lost, connected)
	})
}
