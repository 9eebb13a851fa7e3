package framework_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// A follower that is cut off from its leader goes on answering reads and pings,
// so nothing but the lease clock tells in time.
func TestHold_on_an_isolated_follower(t *testing.T) {
	t.Parallel()
	ensemble := zktest.RunEnsemble(t, 3)
	leader, err := ensemble.Leader(within(t, patience))
	if err != nil {
		t.Fatal(err)
	}
	followers, err := ensemble.Followers(within(t, patience))
	if err != nil || len(followers) == 0 {
		t.Fatal(followers, err)
	}
	observer := connect(t, leader.Addr(), framework.WithSessionTimeout(20*time.Second))

	const clients = 5
	var holds []*framework.SessionHold
	var expiries []*framework.Watch
	for range clients {
		c := connect(t, followers[0].Addr())
		node := mustCreate(t, c, "/cut-off/node-", "", framework.Ephemeral(), framework.Sequential())
		must.OK(t, observer.Sync(t.Context(), "/"))
		expiries = append(expiries, mustWatch(t, observer, node, framework.WatchExists))
		holds = append(holds, mustHold(t, c))
	}
	first := holds[0].Deadline()
	zktest.Eventually(t, patience, "the deadlines come from answers rather than from handshakes", func() bool {
		for _, h := range holds {
			if h.Deadline().Sub(first) < 2*time.Second {
				return false
			}
		}
		return true
	})
	must.OK(t, ensemble.Isolate(followers[0]))
	start := time.Now()
	type end struct{ lost, expired time.Duration }
	ends := make(chan end)
	for i := range clients {
		go func() {
			var e end
			for e.lost == 0 || e.expired == 0 { // in whatever order
				lost, expired := holds[i].Lost(), expiries[i].Fired()
				if e.lost != 0 {
					lost = nil
				}
				if e.expired != 0 {
					expired = nil
				}
				select {
				case <-lost:
					e.lost = time.Since(start)
				case <-expired:
					e.expired = time.Since(start)
				case <-t.Context().Done():
					return
				}
			}
			select {
			case ends <- e:
			case <-t.Context().Done():
			}
		}()
	}
	for range clients {
		select {
		case e := <-ends:
			gap := (e.expired - e.lost).Round(time.Millisecond)
			t.Logf("lost after %v, %v before the leader expired the session", e.lost.Round(time.Millisecond), gap)
			if gap <= 0 {
				t.Errorf("lost %v after the leader expired the session", -gap)
			}
		case <-time.After(patience):
			t.Fatal("no loss or no expiry")
		}
	}
	for i, w := range expiries {
		if w.Event() != framework.EventDeleted {
			t.Errorf("znode of client %d: %v, want it to be deleted", i, w.Event())
		}
		wantErr(t, "loss", holds[i].Err(), framework.ErrSessionDeadline)
	}
	must.OK(t, ensemble.Heal(followers[0]))
}
