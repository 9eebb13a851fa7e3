package sim_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/discovery"
)

// The guarantees of discovery, in addition to those of kept znodes and of caches.
const (
	registeredOnly guarantee = "registered instances"
	lastGoodList   guarantee = "last good list"
)

// Each client registers an instance of one service. A permanent instance always exists.
const (
	servicesRoot = "/services"
	serviceName  = "web"
	permanentID  = "permanent"
)

type instance = discovery.Instance[string]

func discovered() *recipe {
	return &recipe{
		name: "discovery", oneIn: 15, plan: (*plan).takePaths, live: (*environment).discover, bugs: discoveryBugs(),
		guarantees: []guarantee{registeredOnly, lastGoodList},
		met: append(comeAgain("discovery"),
			"discovery lists", "discovery stale lists", "discovery changes", "discovery reads", "discovery updates",
			"discovery at the end",
		),
	}
}

// A discovering is a service whose instances the clients are.
type discovering struct {
	*task
	past    *past
	number  atomic.Int64 // of the latest port
	checked sync.WaitGroup
	done    chan struct{} // closed when all clients have checked the instances
}

// discover has each client register and find instances until end is called.
func (env *environment) discover() (end func()) {
	k := &discovering{task: env.newTask(), past: env.recordPast(servicesRoot), done: make(chan struct{})}
	k.registerPermanent()
	k.checked.Add(len(env.clients))
	k.each(15, func(c *client, r *rand.Rand) {
		for !k.live(c, r) {
			pass(upTo(r, time.Second))
		}
	})
	return func() {
		close(k.over)
		k.checked.Wait()
		close(k.done)
		k.all.Wait()
	}
}

// registerPermanent makes the instance that always exists.
func (k *discovering) registerPermanent() {
	registry := made(discovery.New[string](k.env.operator, servicesRoot))
	in := k.instance(permanentID)
	in.Kind = discovery.Permanent
	reg, err := registry.Register(in)
	if err == nil {
		err = errors.Join(reg.Await(k.env.ctx), registry.Close(k.env.ctx))
	}
	if err != nil {
		k.env.violated(liveness, "the registration of the permanent instance: %v", err)
	}
}

// instance returns a new instance with the ID. Its port is unique.
func (k *discovering) instance(id string) instance {
	return instance{Name: serviceName, ID: id, Port: int(k.number.Add(1) % (1 << 16)), Payload: canary}
}

// A registrant is the life of one registry of a client.
type registrant struct {
	*discovering
	client       *client
	f            *framework.Client
	r            *rand.Rand
	registry     *discovery.Registry[string]
	registration *discovery.Registration[string]
	service      *discovery.Service[string]
	ready        bool // the service has had a list
}

// live has one registry for a while. At the end it reports that it has checked the instances.
func (k *discovering) live(c *client, r *rand.Rand) (checked bool) {
	f := c.usable()
	if f == nil {
		return false
	}
	registry := made(discovery.New[string](f, servicesRoot))
	x := &registrant{discovering: k, client: c, f: f, r: r, registry: registry}
	if err := x.start(); err != nil {
		x.close()
		if !errors.Is(err, framework.ErrClosed) {
			k.env.violated(nothingHidden, "a new registry: %v", err)
		}
		return false
	}
	ctx, cancel := context.WithCancel(k.env.ctx)
	defer cancel()
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() {
		for list, err := range x.service.Changes(ctx) {
			if err != nil {
				x.env.violated(nothingHidden, "no read is refused, and Changes says: %v", err)
			}
			x.env.count("discovery changes", 1)
			x.checkList("Changes", false, list)
		}
	})
	for range 1 + r.IntN(12) {
		if k.ended(upTo(r, k.env.plan.timeout/2)) {
			break
		}
		x.act()
	}
	if checked = closed(k.over) && f == c.current() && f.State() != framework.Closed; checked {
		x.checkEnd()
		k.checked.Done()
		<-k.done
	}
	x.close()
	return checked
}

func (x *registrant) start() (err error) {
	if x.registration, err = x.registry.Register(x.instance(x.client.name)); err != nil {
		return err
	}
	x.service, err = x.registry.Watch(serviceName)
	return err
}

// act does one thing with the registry.
func (x *registrant) act() {
	limit := upTo(x.r, x.env.plan.timeout)
	switch x.r.IntN(3) {
	case 0:
		next := x.instance(x.client.name)
		_ = x.call("Update", limit, func(ctx context.Context) error { return x.registration.Update(ctx, next) })
		x.env.count("discovery updates", 1)
	case 1:
		_ = x.call("Instances", limit, func(ctx context.Context) error {
			list, err := x.registry.Instances(ctx, serviceName)
			if err == nil {
				x.env.count("discovery reads", 1)
				x.checkList("Instances", false, list)
			}
			return err
		})
	default:
		x.ready = x.ready || x.call("Ready", limit, x.service.Ready) == nil
		if _, stale := x.service.Stale(); x.ready {
			x.checkList("the list", stale, x.service.Instances())
		}
	}
}

func (x *registrant) call(op string, limit time.Duration, fn func(context.Context) error) error {
	_, err := x.client.within(op+" of discovery", x.r, limit, fn)
	return err
}

// close ends the registry.
func (x *registrant) close() {
	_ = x.call("Close", upTo(x.r, x.env.plan.timeout), x.registry.Close)
}
