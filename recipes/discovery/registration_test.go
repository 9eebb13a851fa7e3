package discovery_test

import (
	"context"
	"errors"
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
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
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

// TestARegistrationInTheNextSessionHidesNoInstance: a client abandons its session, and the ensemble still
// has it, with the instance. Whatever request of the next registration is stuck, the instance exists.
func TestARegistrationInTheNextSessionHidesNoInstance(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]fault.Rule{
		"nothing goes wrong":            {Op: fault.Create, Action: fault.HoldRequest, Skip: 1000},
		"a creation is held up":         {Op: fault.Create, Action: fault.HoldRequest, Skip: 1}, // the first finds the former znode
		"a transaction is held up":      {Op: fault.Multi, Action: fault.HoldRequest},
		"a transaction's reply is late": {Op: fault.Multi, Action: fault.HoldReply},
		"a transaction's reply is lost": {Op: fault.Multi, Action: fault.DropReply},
		"a transaction is not sent":     {Op: fault.Multi, Action: fault.CutBefore},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			base, route, observer := recipetest.Path(t), env.Route(t), env.Client(t)
			c := route.Client(t)
			looking := newRegistry(t, observer, base)
			reg := mustRegister(t, newRegistry(t, c, base), web("i1", 80))
			former := c.Session().ID
			rule := rule // the environments are parallel
			rule.Path = base + "/web/i1"
			held := route.Rules().Add(rule)
			route.Rules().Add(fault.Rule{Op: fault.Connect, Action: fault.OtherSession})
			route.Cut()
			zktest.Eventually(t, recipetest.Generous, "the next session", func() bool {
				return c.State() == framework.Connected && c.Session().ID != former
			})
			env.Quiesce()
			if got := listed(t, observer, looking); got != "i1:80" {
				t.Errorf("instances %s while the client registers again", got)
			}
			held.Release()
			zktest.Eventually(t, recipetest.Generous, "the registration in the next session", func() bool {
				_, st, err := observer.Get(t.Context(), rule.Path)
				return err == nil && st.EphemeralOwner == c.Session().ID
			})
			must.OK(t, reg.Await(recipetest.Patient(t)))
		})
	}
}

// TestAdoptionComparesWithTheUpdatedInstance: a registered instance has got another port. In its place
// comes another client's znode, with the former port or the present one.
func TestAdoptionComparesWithTheUpdatedInstance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		port  int
		taken bool
	}{
		"the former port":  {80, true},
		"the present port": {81, false},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			base, elsewhere, other := recipetest.Path(t), recipetest.Path(t), env.Client(t)
			in := web("i1", 80)
			in.Kind = discovery.Permanent
			reg := mustRegister(t, newRegistry(t, env.Client(t), base), in)
			in.Port = 81
			must.OK(t, reg.Update(recipetest.Patient(t), in))
			in.Port, in.Payload = c.port, zone{Zone: "us"}
			mustRegister(t, newRegistry(t, other, elsewhere), in)
			data, _ := must.Get2(other.Get(t.Context(), elsewhere+"/web/i1"))(t)
			at := base + "/web/i1"
			must.Get(other.Txn(t.Context(), framework.OpDelete(at, framework.AnyVersion), framework.OpCreate(at, data)))(t)
			zktest.Eventually(t, recipetest.Generous, "the end of an attempt", func() bool {
				err := reg.Await(recipetest.Patient(t))
				found, _ := must.Get2(other.Get(t.Context(), at))(t)
				if c.taken {
					return errors.Is(err, node.ErrTaken)
				}
				return err == nil && string(found) != string(data)
			})
			env.Quiesce()
			if found, _ := must.Get2(other.Get(t.Context(), at))(t); (string(found) == string(data)) != c.taken {
				t.Errorf("data %s; it is another client's: %v", found, c.taken)
			}
		})
	}
}

// hostile is a payload whose user's code fails.
type hostile struct{}

func (*hostile) UnmarshalJSON([]byte) error { panic("no such payload") }

// TestAPayloadIsNotDecodedForAdoption: the kind, the address and the ports decide. No code of the user's
// runs for that.
func TestAPayloadIsNotDecodedForAdoption(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		base := recipetest.Path(t)
		in := web("i1", 80)
		in.Kind = discovery.Static
		mustRegister(t, newRegistry(t, env.Client(t), base), in)
		r := must.Get(discovery.New[hostile](env.Client(t), base))(t)
		again := must.Get(r.Register(discovery.Instance[hostile]{
			Name: in.Name, ID: in.ID, Address: in.Address, Port: in.Port, Kind: in.Kind,
		}))(t)
		must.OK(t, again.Await(recipetest.Patient(t)))
		must.OK(t, r.Close(recipetest.Patient(t)))
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded))
}

// TestALastingInstanceIsNotTaken: two clients register one ID at two addresses, of kinds whose znodes
// belong to no session. The second is refused. The same instance is registered again, as by a process
// that starts again.
func TestALastingInstanceIsNotTaken(t *testing.T) {
	t.Parallel()
	for _, kind := range []discovery.Kind{discovery.Static, discovery.Permanent} {
		recipetest.Subtest(t, kind.String(), func(t *testing.T, env *zkenv.Env) {
			base := recipetest.Path(t)
			first, second := newRegistry(t, env.Client(t), base), newRegistry(t, env.Client(t), base)
			in := instance{Name: "web", ID: "x", Address: "10.0.0.1", Port: 80, Kind: kind}
			must.OK(t, must.Get(first.Register(in))(t).Await(recipetest.Patient(t)))
			again := must.Get(second.Register(in))(t)
			must.OK(t, again.Await(recipetest.Patient(t)))
			must.OK(t, again.Close(recipetest.Patient(t)))
			in.Address = "10.0.0.2"
			other := must.Get(second.Register(in))(t)
			recipetest.Fails(t, "Await of a second instance of the ID", other.Await(recipetest.Patient(t)), node.ErrTaken)
			found := must.Get(first.Instances(t.Context(), "web"))(t)
			if len(found) != 1 || found[0].Address != "10.0.0.1" {
				t.Errorf("instances %+v, want the first one", found)
			}
		})
	}
}

// A curious payload asks its registration for the instance while it is encoded.
type curious struct {
	Zone string
	ask  func()
}

// MarshalJSON is part of json.Marshaler.
func (c curious) MarshalJSON() ([]byte, error) {
	if c.ask != nil {
		c.ask()
	}
	return []byte(`"` + c.Zone + `"`), nil
}

// UnmarshalJSON is part of json.Unmarshaler.
func (c *curious) UnmarshalJSON([]byte) error { return nil }

// A payload's methods may call the registration that encodes it.
func TestPayloadCallsItsRegistration(t *testing.T) {
	t.Parallel()
	client := recipetest.ClientOf(t, zkserver.Run(t))
	registry := must.Get(discovery.New[curious](client, "/services"))(t)
	reg := must.Get(registry.Register(discovery.Instance[curious]{Name: "web", ID: "i1", Address: "h", Port: 80}))(t)
	done := make(chan error, 1)
	seen := make(chan int, 1)
	in := discovery.Instance[curious]{Name: "web", Address: "h", Port: 81}
	in.Payload.ask = func() {
		select {
		case seen <- reg.Instance().Port:
		default:
		}
	}
	go func() { done <- reg.Update(t.Context(), in) }()
	must.OK(t, must.Receive(t, done, "Update, whose mutex the payload's MarshalJSON is not called with"))
	if got := <-seen; got != 80 {
		t.Errorf("MarshalJSON saw port %d, want that before the update", got)
	}
	if got := reg.Instance().Port; got != 81 {
		t.Errorf("port %d after the update, want 81", got)
	}
}
