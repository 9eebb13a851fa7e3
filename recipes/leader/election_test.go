package leader_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

func revoke(t testing.TB, c *framework.Client, node string) {
	t.Helper()
	must.OK(t, lock.Revoke(t.Context(), c, node))
}

func TestFormatsHaveNames(t *testing.T) {
	t.Parallel()
	if got := []string{leader.Latch.String(), leader.Selector.String()}; !slices.Equal(got, []string{"Latch", "Selector"}) {
		t.Errorf("formats %v", got)
	}
}

// A candidate's znode holds the metadata of all locks, or Curator's bytes if there is an id.
func TestNodeDataOfCandidates(t *testing.T) {
	t.Parallel()
	host := must.Get(os.Hostname())(t)
	address := ""
	if addrs, err := net.LookupIP(host); err == nil && len(addrs) > 0 {
		address = addrs[0].String()
	}
	cases := []struct {
		name, kind, data string
		opts             []leader.Option
	}{
		{"latch with Curator's default", "-latch-", "", []leader.Option{leader.WithID("")}},
		{"latch with an id", "-latch-", "anna", []leader.Option{leader.WithID("anna")}},
		{"selector with Curator's default", "-lock-", address, []leader.Option{leader.WithFormat(leader.Selector), leader.WithID("")}},
		{"selector with an id", "-lock-", "anna", []leader.Option{leader.WithFormat(leader.Selector), leader.WithID("anna")}},
	}
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		for _, tc := range cases {
			path := recipetest.Path(t)
			e := newElection(t, c, path, tc.opts...)
			term := mustLead(t, e)
			_, name := zkpath.Split(term.Node())
			data, _, err := c.Get(t.Context(), term.Node())
			if err != nil || string(data) != tc.data || !strings.Contains(name, tc.kind) || !strings.HasPrefix(name, "_c_") {
				t.Errorf("%s: %s holds %q (%v), want %q", tc.name, name, data, err, tc.data)
			}
			p, ok, err := e.Leader(t.Context())
			if err != nil || !ok || !p.Holder || p.Path != term.Node() || p.Metadata != nil || string(p.Data) != tc.data {
				t.Errorf("%s: leader %+v, %v, %v", tc.name, p, ok, err)
			}
			mustResign(t, term)
		}
		for id, opts := range map[string][]leader.Option{
			"": nil, "anna": {leader.WithID("anna"), leader.WithMetadata()}, "bert": {leader.WithMetadata(), leader.WithID("bert"), leader.WithFormat(leader.Selector)},
		} {
			e := newElection(t, c, recipetest.Path(t), opts...)
			term, err := e.Campaign(lock.ContextWithOwner(t.Context(), lock.NewOwner("nightly")))
			must.OK(t, err)
			p, ok, err := e.Leader(t.Context())
			if m := p.Metadata; err != nil || !ok || string(p.Data) != id || m == nil || m.Host != host || m.PID != os.Getpid() || m.Owner != "nightly" {
				t.Errorf("leader with metadata: %+v, %v, %v", p, ok, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			_, err = e.Campaign(ctx)
			cancel()
			if want := fmt.Sprintf(", process %d on %s", os.Getpid(), host); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a wait for it: %v, want %q", err, want)
			}
			mustResign(t, term)
		}
	})
}

func TestLeaderAndParticipants(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		e := newElection(t, c, path)
		if p, ok, err := e.Leader(t.Context()); ok || err != nil {
			t.Errorf("leader of a path that does not exist: %+v, %v, %v; want nobody", p, ok, err)
		}
		if all, err := e.Participants(t.Context()); len(all) > 0 || err != nil {
			t.Errorf("participants of a path that does not exist: %v, %v; want none", all, err)
		}
		term := mustLead(t, newElection(t, env.Client(t), path, leader.WithID("anna")))
		var behind []<-chan recipetest.Outcome
		for n, id := range []string{"bert", "carla"} {
			behind = append(behind, recipetest.Later(t.Context(), newElection(t, env.Client(t), path, leader.WithID(id)).Campaign))
			recipetest.AwaitChildren(t, c, path, n+2)
		}
		all, err := e.Participants(t.Context())
		var seen []string
		for i, p := range all {
			seen = append(seen, string(p.Data))
			if p.Holder != (i == 0) || p.Kind != "latch-" {
				t.Errorf("participant %d: %+v", i, p)
			}
		}
		if err != nil || !slices.Equal(seen, []string{"anna", "bert", "carla"}) {
			t.Errorf("participants %v, %v; want anna, bert, carla", seen, err)
		}
		mustResign(t, term)
		for _, done := range behind {
			mustResign(t, recipetest.Granted(t, done))
		}
	})
}

// Leader does not fail where the leader leaves while it is asked: CURATOR-358.
func TestLeaderIsAskedWhileItChanges(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, c, path := env.Route(t), env.Client(t), recipetest.Path(t)
		term := mustLead(t, newElection(t, c, path))
		done := recipetest.Later(t.Context(), newElection(t, env.Client(t), path).Campaign)
		recipetest.AwaitChildren(t, c, path, 2)
		asking := newElection(t, route.Client(t), path)
		read := route.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.HoldRequest})
		type answer struct {
			p   lease.Participant
			ok  bool
			err error
		}
		answers := make(chan answer, 1)
		go func() {
			p, ok, err := asking.Leader(t.Context())
			answers <- answer{p, ok, err}
		}()
		must.Receive(t, read.Hit(), "the read of the leader's znode")
		mustResign(t, term)
		next := recipetest.Granted(t, done)
		read.Release()
		if a := must.Receive(t, answers, "the answer"); a.err != nil || !a.ok || a.p.Path != next.Node() {
			t.Errorf("leader %+v, %v, %v; want %s", a.p, a.ok, a.err, next.Node())
		}
		mustResign(t, next)
	})
}

// Both would lead, so who comes second is refused, and leaves nothing: Campaign, too, as TestKindsOnOnePath of package
// lock shows.
func TestMixedFormatsAreRefusedAmongOurs(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		formats := []leader.Format{leader.Latch, leader.Selector}
		for i, format := range formats {
			path := recipetest.Path(t)
			other := newElection(t, c, path, leader.WithFormat(formats[1-i]))
			term := mustLead(t, newElection(t, c, path, leader.WithFormat(format)))
			refused := map[string]func() error{
				"Leader":       func() error { _, _, err := other.Leader(t.Context()); return err },
				"Participants": func() error { _, err := other.Participants(t.Context()); return err },
				"Run": func() error {
					return other.Run(t.Context(), func(context.Context, *lease.Lease) error { return errors.New("it leads") })
				},
			}
			for name, call := range refused {
				if err := call(); !errors.Is(err, leader.ErrMixed) {
					t.Errorf("%s beside %v: %v, want ErrMixed", name, format, err)
				}
			}
			recipetest.AwaitChildren(t, c, path, 1)
			mustResign(t, term)
			mustResign(t, mustLead(t, other))
		}
	})
}

// A candidate of the other format that comes later ends no wait of those that were there before.
func TestWaitingCandidateIsNotRefused(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), recipetest.Path(t)
		term := mustLead(t, newElection(t, c, path))
		done := recipetest.Later(t.Context(), newElection(t, env.Client(t), path).Campaign)
		recipetest.AwaitChildren(t, c, path, 2)
		env.Quiesce()
		stranger := must.Get(c.Create(t.Context(), path+"/_c_stranger-lock-", nil, framework.Ephemeral(),
			framework.Sequential()))(t)
		revoke(t, c, term.Node()) // its successor lists again
		env.Quiesce()
		mustResign(t, term)
		mustResign(t, recipetest.Granted(t, done))
		must.OK(t, c.Delete(t.Context(), stranger))
	})
}
