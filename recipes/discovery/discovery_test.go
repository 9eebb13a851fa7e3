package discovery_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// As TestServiceDiscovery.testBasic and testMultipleInstances, and TestServiceCache.testUpdate.
func TestInstancesFollowTheTree(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		base, c := recipetest.Path(t), env.Client(t)
		r, other := newRegistry(t, c, base), newRegistry(t, env.Client(t), base)
		if all, err := other.Services(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("services %v, %v of a base without a znode", all, err)
		}
		s := mustWatch(t, other, "web")
		seen := follow(t, s)
		zktest.Eventually(t, recipetest.Generous, "no instances", func() bool { return seen.String() == "none" })
		first := mustRegister(t, r, web("i1", 80))
		awaitInstances(t, s, "i1:80")
		second := mustRegister(t, r, web("i2", 81))
		awaitInstances(t, s, "i1:80 i2:81")
		mustRegister(t, r, discovery.Instance[zone]{Name: "api"})
		if got := listed(t, c, r); got != "i1:80 i2:81" {
			t.Errorf("Instances: %s", got)
		}
		if all, err := r.Services(t.Context()); err != nil || !slices.Equal(all, []string{"api", "web"}) {
			t.Errorf("services %v, %v", all, err)
		}
		changed := web("", 90)
		must.OK(t, first.Update(recipetest.Patient(t), changed))
		awaitInstances(t, s, "i1:90 i2:81")
		if got := s.Instances()[0]; !got.Registered.Equal(first.Instance().Registered) || got.ID != "i1" {
			t.Errorf("%+v after Update, want the ID and the time of the registration", got)
		}
		must.OK(t, second.Close(t.Context()))
		awaitInstances(t, s, "i1:90")
		mustRegister(t, r, web("i2", 91)) // the ID is free again
		awaitInstances(t, s, "i1:90 i2:91")
		zktest.Eventually(t, recipetest.Generous, "the last change", func() bool { return strings.HasSuffix(seen.String(), "| i1:90 i2:91") })
		must.OK(t, s.Close())
	})
}

// CURATOR-181: what is registered again is the updated data.
func TestUpdatedDataIsRegisteredAgain(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		base, route, observer := recipetest.Path(t), env.Route(t), env.Client(t)
		c := route.Client(t, framework.WithSessionTimeout(2*time.Second))
		reg := mustRegister(t, newRegistry(t, c, base), web("i1", 80))
		s := mustWatch(t, newRegistry(t, observer, base), "web")
		awaitInstances(t, s, "i1:80")
		route.Refuse()
		route.Cut()
		ctx := recipetest.Within(t, 100*time.Millisecond)
		recipetest.Fails(t, "Update during an outage", reg.Update(ctx, web("i1", 81)), context.DeadlineExceeded)
		recipetest.Fails(t, "Instances during an outage", recipetest.Err(newRegistry(t, c, base).Instances(ctx, "web")), context.DeadlineExceeded)
		awaitInstances(t, s, "none") // the session has ended
		route.Heal()
		awaitInstances(t, s, "i1:81")
		must.OK(t, reg.Await(recipetest.Patient(t)))
	})
}

// CURATOR-320: connections that come and go create at most one znode for each session.
func TestFlapsMakeNoStormOfRegistrations(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		base, route := recipetest.Path(t), env.Route(t)
		c := route.Client(t)
		r := newRegistry(t, c, base)
		mustRegister(t, newRegistry(t, env.Client(t), base), web("z", 1)) // keeps the parents
		const instances = 5
		flaps := 20
		if !env.Kind().Virtual() {
			flaps = 5 // each takes a second
		}
		for i := range instances {
			mustRegister(t, r, web(fmt.Sprint("i", i), 80))
		}
		s := mustWatch(t, r, "web")
		seen := follow(t, s)
		want := "i0:80 i1:80 i2:80 i3:80 i4:80 z:1"
		zktest.Eventually(t, recipetest.Generous, "the first list", func() bool { return seen.String() == want })
		route.ResetRequests()
		session := c.Session().ID
		for i := range flaps {
			route.Cut()
			zktest.Eventually(t, recipetest.Generous, "the connection", func() bool {
				_, stale := s.Stale()
				return route.Count(fault.Connect) > i && c.State() == framework.Connected && !stale
			})
		}
		if c.Session().ID != session {
			t.Fatal("the session has changed: the test shows nothing")
		}
		awaitInstances(t, s, want)
		if n := below(route, base, fault.Create, fault.SetData, fault.Delete); n != 0 {
			t.Errorf("%d writes in %d flaps within a session, want none", n, flaps)
		}
		if seen.String() != want {
			t.Errorf("lists %s, want one: nothing has changed", seen)
		}
		route.ResetRequests()
		route.Expire(t)
		zktest.Eventually(t, recipetest.Generous, "the next session's instances", func() bool {
			return c.Session().ID != session && listed(t, c, r) == want
		})
		if n := below(route, base+"/web/", fault.Create); n != instances {
			t.Errorf("%d creations in a session of %d instances", n, instances)
		}
	}, zkenv.Only("each connection takes a second", zkenv.Embedded, zkenv.EmbeddedEnsemble, zkenv.Standalone))
}

// Curator's close deletes Static and Permanent instances, too.
func TestCloseTakesBackWhatIsDynamicAndNothingElse(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		base, c, observer := recipetest.Path(t), env.Client(t), env.Client(t)
		r, looking := newRegistry(t, c, base), newRegistry(t, observer, base)
		foreign := mustRegister(t, looking, web("z", 1))
		for i, kind := range []discovery.Kind{discovery.Dynamic, discovery.Static, discovery.Permanent} {
			in := web(fmt.Sprint("i", i), 80)
			in.Kind = kind
			mustRegister(t, r, in)
			in.ID = fmt.Sprint("closed", i)
			must.OK(t, mustRegister(t, r, in).Close(t.Context()))
		}
		must.Get(observer.Create(t.Context(), base+"/web/i",
			[]byte(`{"name":"web","id":"i","serviceType":"DYNAMIC_SEQUENTIAL"}`), framework.Sequential()))(t)
		s := mustWatch(t, r, "web")
		must.OK(t, r.Close(t.Context()))
		if got, want := listed(t, observer, looking), "closed1:80 closed2:80 i:0 i1:80 i2:80 z:1"; got != want {
			t.Errorf("after Close: %s, want %s", got, want)
		}
		recipetest.Fails(t, "Ready of a service of a closed registry", s.Ready(t.Context()), framework.ErrClosed)
		if len(env.Ephemerals(t, c.Session().ID)) != 0 {
			t.Errorf("ephemeral znodes %v are left", env.Ephemerals(t, c.Session().ID))
		}
		again := newRegistry(t, c, base)
		in := web("i1", 80)
		in.Kind = discovery.Static
		moved := mustRegister(t, again, in) // as by a process that starts again
		in.Port = 99
		must.OK(t, moved.Update(t.Context(), in))
		if got := listed(t, observer, looking); !strings.Contains(got, "i1:99") {
			t.Errorf("a Static instance registered again: %s", got)
		}
		must.OK(t, foreign.Close(t.Context()))
	})
}

// TestDiscoveryRequests counts, at the server's door, what the page of the recipe promises.
func TestDiscoveryRequests(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		route, base := env.Route(t), recipetest.Path(t)
		c := route.Client(t)
		r, other := newRegistry(t, c, base), newRegistry(t, env.Client(t), base)
		mustRegister(t, other, web("i0", 80)) // the parents exist
		check := func(what string, want ...fault.Op) {
			t.Helper()
			recipetest.MustHaveSent(t, what, route, base, want...)
		}
		route.ResetRequests()
		reg := mustRegister(t, r, web("i1", 81))
		check("Register", fault.Create, fault.Exists)
		must.Get(r.Instances(t.Context(), "web"))(t)
		check("Instances, 2, of unknown size", fault.GetChildren, fault.GetData, fault.GetData)
		must.Get(r.Instances(t.Context(), "web"))(t)
		check("Instances, 2", fault.GetChildren, fault.MultiRead)
		must.OK(t, reg.Close(t.Context()))
		check("Close of the registration", fault.Sync, fault.Exists, fault.Delete)
		s := mustWatch(t, r, "web")
		awaitInstances(t, s, "i0:80")
		env.Quiesce()
		route.ResetRequests()
		mustRegister(t, other, web("i2", 82))
		awaitInstances(t, s, "i0:80 i2:82")
		env.Quiesce()
		check("a new instance", fault.GetData)
		for range 10 {
			s.Instances()
		}
		check("Service.Instances")
	})
}
