package leader_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// A sight is what Observe shows.
type sight struct {
	leader lease.Participant
	known  bool
}

// observe ranges over Observe on a goroutine of its own, which ends with the test.
func observe(t testing.TB, e *leader.Election) <-chan sight {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	sights, done := make(chan sight, 100), make(chan struct{}) // more than any test looks at
	go func() {
		defer close(done)
		for p, known := range e.Observe(ctx) {
			sights <- sight{p, known}
		}
	}()
	t.Cleanup(func() {
		cancel()
		must.Receive(t, done, "the end of Observe with its context")
	})
	return sights
}

// awaitSight waits for the sight of a leader, by its znode, or of no leader, by "".
func awaitSight(t testing.TB, sights <-chan sight, node string) {
	t.Helper()
	var last sight
	zktest.Eventually(t, recipetest.Generous, "Observe shows "+node, func() bool {
		select {
		case last = <-sights:
			return last.leader.Path == node && last.known == (node != "")
		default:
			return false
		}
	})
	if node != "" && !last.leader.Holder {
		t.Errorf("%s leads and is no Holder", node)
	}
}

func TestObserveWithoutALeader(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, path := env.Route(t), recipetest.Path(t)
		sights := observe(t, newElection(t, route.Client(t), path))
		awaitSight(t, sights, "") // there is not even a directory
		c := env.Client(t)
		for range 3 {
			term := mustLead(t, newElection(t, c, path))
			awaitSight(t, sights, term.Node())
			mustResign(t, term)
			awaitSight(t, sights, "")
		}
		must.Get(c.Create(t.Context(), path+"/stranger", nil, framework.WithParents()))(t)
		term := mustLead(t, newElection(t, c, path))
		awaitSight(t, sights, term.Node())
		route.Refuse()
		route.Cut()
		awaitSight(t, sights, "") // it is not known
		route.Heal()
		awaitSight(t, sights, term.Node())
		mustResign(t, term)
	})
}

// Faults of the observer's requests and of its session delay what it shows, and no more.
func TestObserveConvergesUnderFaults(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		rounds := 12
		if !env.Kind().Virtual() {
			rounds = 4
		}
		route := env.Route(t)
		sights := observe(t, newElection(t, route.Client(t, framework.WithSessionTimeout(sessionAtStake)), path))
		awaitSight(t, sights, "")
		for n := range rounds {
			for i, action := range []fault.Action{fault.CutBefore, fault.DropReply, fault.DropEvent} {
				rule := fault.Rule{Action: action, Skip: n % 4}
				if action == fault.DropEvent {
					rule = fault.Rule{Op: fault.Event, Action: action}
				}
				route.Rules().Add(rule)
				term := mustLead(t, newElection(t, c, path))
				if i == n%3 && len(route.Sessions()) > 0 {
					route.Expire(t)
				}
				awaitSight(t, sights, term.Node())
				mustResign(t, term)
				awaitSight(t, sights, "")
				route.Rules().Clear()
			}
		}
	})
}

// A candidate may come between the listing that shows none and the watch for the first one. It is shown
// at once.
func TestObserveMissesNoFirstCandidate(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, c, path := env.Route(t), env.Client(t), recipetest.Path(t)
		must.Get(c.Create(t.Context(), path, nil, framework.WithParents()))(t)
		observing := newElection(t, route.Client(t), path)
		watch := route.Rules().Add(fault.Rule{Op: fault.GetChildren, Path: path, Action: fault.HoldRequest, Skip: 1})
		sights := observe(t, observing)
		must.Receive(t, watch.Hit(), "the watch for the first candidate")
		term := mustLead(t, newElection(t, c, path))
		released := time.Now()
		watch.Release()
		awaitSight(t, sights, term.Node())
		if took := time.Since(released); env.Kind() == zkenv.Embedded && took > zkenv.SessionTimeout/2 {
			t.Errorf("shown after %v", took)
		}
		mustResign(t, term)
	})
}

func TestJoiningCandidatesWakeNoObserver(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, c, path := env.Route(t), env.Client(t), recipetest.Path(t)
		// First of all: on a busy machine they take time, in which the observer reads again without an event.
		others := []*framework.Client{env.Client(t), env.Client(t), env.Client(t)}
		term := mustLead(t, newElection(t, c, path))
		sights := observe(t, newElection(t, route.Client(t), path))
		awaitSight(t, sights, term.Node())
		env.Quiesce()
		route.ResetRequests()
		var behind []<-chan recipetest.Outcome
		for n, other := range others {
			behind = append(behind, recipetest.Later(t.Context(), newElection(t, other, path).Campaign))
			recipetest.AwaitChildren(t, c, path, n+2)
		}
		env.Quiesce()
		if n := route.Count(fault.GetChildren, fault.GetData, fault.Exists); n > 0 {
			t.Errorf("%d requests of the observer when candidates joined, want none", n)
		}
		mustResign(t, term)
		next := must.Receive(t, behind[0], "the next term").Lease
		awaitSight(t, sights, next.Node())
		if lists, reads := route.Count(fault.GetChildren), route.Count(fault.GetData, fault.Exists); lists != 1 || reads != 1 {
			t.Errorf("%d listings and %d reads for a change, want 1 and 1", lists, reads)
		}
		mustResign(t, next)
		for _, done := range behind[1:] {
			mustResign(t, must.Receive(t, done, "the next term").Lease)
		}
	})
}

// The latest alone: who looks away for long sees no leader of the past.
func TestObserveShowsTheLatestAlone(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		e := newElection(t, c, path)
		term := mustLead(t, e)
		n := 0
		for p, known := range e.Observe(t.Context()) {
			if n++; n == 1 {
				for range 3 {
					mustResign(t, term)
					term = mustLead(t, e)
				}
				continue
			}
			if !known || p.Path != term.Node() {
				t.Errorf("shows %v, %v; want %s", p.Path, known, term.Node())
			}
			break
		}
		mustResign(t, term)
	})
}

// Observe ends with its client.
func TestObserveEndsWithTheClient(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		done := make(chan struct{})
		shown := make(chan struct{}, 100)
		go func() {
			defer close(done)
			for range newElection(t, c, recipetest.Path(t)).Observe(context.WithoutCancel(t.Context())) {
				shown <- struct{}{}
			}
		}()
		must.Receive(t, shown, "the first sight")
		must.OK(t, c.Close())
		must.Receive(t, done, "the end of Observe")
	})
}

// A leader that is asked to resign is shown again, as revoked.
func TestObserveShowsARevocation(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		term := mustLead(t, newElection(t, c, path))
		sights := observe(t, newElection(t, env.Client(t), path))
		awaitSight(t, sights, term.Node())
		revoke(t, c, term.Node())
		s := must.Receive(t, sights, "the revocation")
		if !s.known || !s.leader.Revoked || s.leader.Path != term.Node() {
			t.Errorf("shows %+v, %v; want the leader, revoked", s.leader, s.known)
		}
		mustResign(t, term)
	})
}

// TestObserveOfWhatCannotBeRead: behind data that are too large an observer sees at once that they can be read, or
// that the leader is gone, and who joins costs it nothing.
func TestObserveOfWhatCannotBeRead(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, c, path := env.Route(t), env.Client(t), recipetest.Path(t)
		must.Get(c.Create(t.Context(), path, nil, framework.WithParents()))(t)
		node := joined(t, c, path, make([]byte, 20<<10))
		sights := observe(t, newElection(t, route.Client(t, framework.WithMaxPacket(1<<20, 8<<10)), path))
		awaitUnread(t, sights, node, framework.ErrTooLarge)
		env.Quiesce()
		route.ResetRequests()
		next := joined(t, c, path, make([]byte, 20<<10))
		env.Quiesce()
		if n := route.Count(fault.GetChildren, fault.GetData, fault.Exists); n > 0 {
			t.Errorf("%d requests of the observer when a candidate joined, want none", n)
		}
		began := time.Now()
		must.Get(c.Set(t.Context(), node, nil, framework.AnyVersion))(t)
		awaitUnread(t, sights, node, nil)
		must.OK(t, c.Delete(t.Context(), node))
		awaitUnread(t, sights, next, framework.ErrTooLarge)
		must.OK(t, c.Delete(t.Context(), next))
		awaitSight(t, sights, "")
		if took := time.Since(began); env.Kind().Virtual() && took > zkenv.SessionTimeout/2 {
			t.Errorf("shown after %v", took)
		}
	})
}

// TestObserveBehindADirectoryThatMayNotBeRead: the refusal of the directory's watch is not taken for the leader's.
func TestObserveBehindADirectoryThatMayNotBeRead(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, c, path := env.Route(t), env.Client(t), recipetest.Path(t)
		must.Get(c.Create(t.Context(), path, nil, framework.WithParents()))(t)
		node := joined(t, c, path, nil)
		recipetest.Permit(t, c, node, acl.All&^acl.Read)
		watch := route.Rules().Add(fault.Rule{Op: fault.GetChildren, Path: path, Action: fault.HoldRequest, Skip: 1})
		sights := observe(t, newElection(t, route.Client(t), path))
		must.Receive(t, watch.Hit(), "the watch of the directory")
		recipetest.Permit(t, c, path, acl.All&^acl.Read)
		watch.Release()
		awaitSight(t, sights, "")
		recipetest.Permit(t, c, path, acl.All)
		awaitUnread(t, sights, node, framework.ErrNoAuth)
		must.OK(t, c.Delete(t.Context(), node))
		awaitSight(t, sights, "")
	}, zkenv.Only("the refusal is every server's", zkenv.Embedded, zkenv.Standalone))
}

// joined returns the path of a candidate with the data, which another program may have written.
func joined(t testing.TB, c *framework.Client, path string, data []byte) string {
	t.Helper()
	return must.Get(c.Create(t.Context(), path+"/latch-", data, framework.Ephemeral(), framework.Sequential(), framework.Protected()))(t)
}

// awaitUnread waits for the sight of a leader whose znode can't be read because of want; with nil, whose znode can.
func awaitUnread(t testing.TB, sights <-chan sight, node string, want error) {
	t.Helper()
	zktest.Eventually(t, recipetest.Generous, "Observe shows "+node, func() bool {
		select {
		case s := <-sights:
			return s.known && s.leader.Path == node && errors.Is(s.leader.Err, want)
		default:
			return false
		}
	})
}
