package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/testing/zktest"
)

// networkVariable says how the members of the ensemble reach each other: "namespaces",
// "forwarders", or either as it can be had if it is empty.
const networkVariable = "CHAOS_NETWORK"

// The servers' settings are those of ZooKeeper's sample configuration.
const (
	tick      = 2 * time.Second
	syncLimit = 5
)

// The networks of a run, as its summary has them.
const (
	byNamespaces = "in network namespaces: cuts drop packets"
	byForwarders = "*** BY FORWARDERS, NOT IN NETWORK NAMESPACES: cuts hold back bytes"
)

// votes is how many members vote. One more is an observer.
const votes = 3

// hasObserverMaster reports whether the observer learns from a follower, if it can.
func hasObserverMaster(seed uint64) bool { return seed%2 == 1 }

// newEnsemble starts the ensemble, and tells how its members reach each other. Where
// there are no network namespaces it makes do with forwarders, but not on a
// build server that has the privileges: there it fails. Only in namespaces may the observer learn from a
// follower.
func newEnsemble(t testing.TB, seed uint64) (e *zktest.Ensemble, network string, namespaces bool) {
	t.Helper()
	opts := []zktest.Option{
		zktest.WithTickTime(tick), zktest.WithSyncLimit(syncLimit), zktest.WithLogLevel("ERROR"), zktest.WithObservers(1),
	}
	demand := os.Getenv(networkVariable)
	var err error
	switch demand {
	case "", "namespaces":
		err = zktest.Namespaces()
	case "forwarders":
		err = fmt.Errorf("%s=%s", networkVariable, demand)
	default:
		t.Fatalf("%s=%q: must be namespaces, forwarders or nothing", networkVariable, demand)
	}
	switch privileged := os.Geteuid() == 0; {
	case err == nil && hasObserverMaster(seed):
		opts = append(opts, zktest.WithNamespaces(), zktest.WithObserverMasters())
		return zktest.RunEnsemble(t, votes, opts...), byNamespaces + "; the observer learns from a follower", true
	case err == nil:
		return zktest.RunEnsemble(t, votes, append(opts, zktest.WithNamespaces())...), byNamespaces + "; the observer learns from the leader", true
	case demand == "namespaces", demand == "" && privileged && os.Getenv("CI") == "true":
		t.Fatal(err)
	}
	return zktest.RunEnsemble(t, votes, opts...), byForwarders + ": " + err.Error(), false
}

// cutName begins the names of the faults that cut members off from each other.
const cutName = "network cut, "

// networkFaults cut members off from each other, and from their clients where that is
// possible.
func (r *run) networkFaults() []fault {
	cut := func(name string, leader bool, do func(s *zktest.Server, others []*zktest.Server) error) fault {
		return r.harm(cutName+name, leader, func(s *zktest.Server) error { return do(s, r.others(s)) }, moment, lasting)
	}
	e := r.ensemble
	isolate := func(s *zktest.Server, _ []*zktest.Server) error { return e.Isolate(s) }
	mute := func(s *zktest.Server, others []*zktest.Server) error {
		return errors.Join(e.Cut(s, others[0]), e.Cut(s, others[1]))
	}
	deafen := func(s *zktest.Server, others []*zktest.Server) error {
		return errors.Join(e.Cut(others[0], s), e.Cut(others[1], s))
	}
	faults := []fault{
		cut("1|2: leader from both followers", true, isolate),
		cut("2|1: a follower from the others", false, isolate),
		cut("1|1|1: all from each other", true, func(s *zktest.Server, others []*zktest.Server) error {
			return errors.Join(e.Isolate(s), e.Isolate(others[0]))
		}),
		cut("one link: leader and a follower, and the third reaches both", true, func(s *zktest.Server, others []*zktest.Server) error {
			return errors.Join(e.Cut(s, others[0]), e.Cut(others[0], s))
		}),
		cut("one way: nobody hears the leader", true, mute),
		cut("one way: the leader hears nobody", true, deafen),
		cut("one way: nobody hears a follower", false, mute),
		cut("one way: a follower hears nobody", false, deafen),
	}
	if !r.namespaces {
		return faults
	}
	return append(faults,
		r.harm("network cut between clients and the leader", true, e.CutClients, moment, lasting),
		r.harm("network cut between clients and a follower", false, e.CutClients, moment, lasting))
}

// others returns the two other members that vote.
func (r *run) others(s *zktest.Server) []*zktest.Server {
	var others []*zktest.Server
	voters, _ := r.members()
	for _, other := range voters {
		if other != s {
			others = append(others, other)
		}
	}
	return others
}

// deposedName is the fault that two servers at once take part in.
const deposedName = cutName + "1|2: leader from both followers, which are killed and restarted at once"

// depose isolates the leader and restarts its followers, which elect another. A leader goes on
// answering its clients for a tick longer than the sync limit; until then it does not know.
func (r *run) depose(ctx context.Context, d dice) done {
	leader := r.member(ctx, true, d)
	if leader == nil {
		return done{} // the run is over
	}
	f := done{whom: leader.Addr(), from: history.Monotonic()}
	r.fail(r.ensemble.Isolate(leader))
	var both sync.WaitGroup
	for _, s := range r.others(leader) {
		both.Go(func() {
			r.fail(s.Kill())
			within, cancel := context.WithTimeout(context.Background(), repairLimit)
			defer cancel()
			_ = s.Restart(within) // repair restarts what has not found a leader
		})
	}
	both.Wait()
	pause(ctx, d.between(longestSession, (syncLimit+2)*tick))
	f.to = history.Monotonic()
	r.repair()
	return f
}
