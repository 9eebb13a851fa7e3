package discovery_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkenv"
)

// Several rounds of concurrent updates leave the same instance in Instance and in the znode.
func TestUpdateConcurrently(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const rounds, updaters = 20, 32
		c := env.Client(t)
		r := newRegistry(t, c, recipetest.Path(t))
		reg := mustRegister(t, r, web("i1", 80))
		ctx := recipetest.Patient(t)
		for round := range rounds {
			var updates sync.WaitGroup
			begin := make(chan struct{})
			for n := range updaters {
				updates.Go(func() {
					<-begin
					if err := reg.Update(ctx, web("i1", 1000+updaters*round+n)); err != nil {
						t.Error(err)
					}
				})
			}
			close(begin)
			updates.Wait()
			want := fmt.Sprintf("i1:%d", reg.Instance().Port)
			if got := listed(t, c, r); got != want {
				t.Fatalf("round %d: the znode has %s, Instance returns %s", round, got, want)
			}
		}
	}, zkenv.Only("the order is the client's", zkenv.Embedded))
}

// An update that is refused changes neither Instance nor the znode.
func TestUpdateRefused(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		r := newRegistry(t, c, recipetest.Path(t))
		reg := mustRegister(t, r, web("i1", 80))
		large := web("i1", 81)
		large.Payload.Zone = strings.Repeat("z", 1<<20)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, ctx := range []context.Context{t.Context(), ended} {
			recipetest.Fails(t, "Update", reg.Update(ctx, large), framework.ErrTooLarge)
		}
		if port, got := reg.Instance().Port, listed(t, c, r); port != 80 || got != "i1:80" {
			t.Errorf("Instance returns port %d, the znode has %s; want 80 in both", port, got)
		}
	}, zkenv.Only("nothing is sent", zkenv.Embedded))
}

// An ACL provider panics in an Update, which so changes nothing. The znode that another process has put in
// place of the instance's meanwhile is not the instance's because it is as that Update wanted it.
func TestAnUpdateThatPanicsChangesNothing(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		var broken atomic.Bool
		c := env.Client(t, framework.WithACLProvider(func(string) []acl.Entry {
			if broken.Load() {
				panic("a bug of the provider")
			}
			return nil
		}))
		r := newRegistry(t, c, recipetest.Path(t))
		in := web("i1", 80)
		in.Kind = discovery.Static
		reg := mustRegister(t, r, in)
		other := in
		other.Port = 81
		broken.Store(true)
		func() {
			defer func() { _ = recover() }()
			_ = reg.Update(t.Context(), other)
		}()
		broken.Store(false)
		if discovery.DescribedBy(reg, other) || !discovery.DescribedBy(reg, in) || reg.Instance().Port != 80 {
			t.Errorf("port %d, and the registration takes the other's znode for its own", reg.Instance().Port)
		}
	}, zkenv.Only("nothing is sent", zkenv.Embedded))
}

// An Update without a time of registration takes that of the Update before it, which is under way when it begins.
func TestUpdateTakesTheTimeOfTheOneBefore(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		begun, goOn := make(chan struct{}), make(chan struct{})
		var slow atomic.Bool
		c := env.Client(t, framework.WithACLProvider(func(string) []acl.Entry {
			if slow.Swap(false) {
				close(begun)
				<-goOn
			}
			return nil
		}))
		reg := mustRegister(t, newRegistry(t, c, recipetest.Path(t)), web("i1", 80))
		first, second := web("i1", 81), web("i1", 82)
		first.Registered = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		slow.Store(true)
		update := func(in instance) chan error {
			done := make(chan error, 1)
			go func() { done <- reg.Update(recipetest.Patient(t), in) }()
			return done
		}
		one := update(first)
		must.Receive(t, begun, "the first one's turn")
		other := update(second)
		env.Quiesce()
		close(goOn)
		must.OK(t, must.Receive(t, one, "the first Update"))
		must.OK(t, must.Receive(t, other, "the second Update"))
		if got := reg.Instance(); got.Port != 82 || !got.Registered.Equal(first.Registered) {
			t.Errorf("port %d, registered %v; want 82 and %v", got.Port, got.Registered, first.Registered)
		}
	}, zkenv.Only("the order is the client's", zkenv.Embedded))
}
