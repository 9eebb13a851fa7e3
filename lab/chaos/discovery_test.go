package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/node"
)

// Each worker registers an instance of one service. A permanent instance always exists.
const servicesRoot, serviceName, permanentID = "/services", "web", "permanent"

// The checks of workers on their lists, as counts.
const (
	sawList      = "saw the permanent instance in a list"
	sawStaleList = "saw the permanent instance in a stale list"
)

type instance = discovery.Instance[string]

func (w *worker) registrants() []errand { return []errand{{"registrant", w.registrant, longRest}} }

// registrant registers its instance for a while, updates it, and checks lists of instances.
func (w *worker) registrant(ctx context.Context, t task) {
	registry, err := discovery.New[string](w.client, servicesRoot)
	if err != nil {
		panic(err)
	}
	x := &registrantLife{worker: w, registry: registry}
	x.register(instance{ID: permanentID, Kind: discovery.Permanent, Registered: time.UnixMilli(1)})
	own := x.register(instance{ID: w.Name})
	if x.service, err = registry.Watch(serviceName); err != nil {
		panic(err)
	}
	for range 1 + t.rand.IntN(60) {
		x.look(ctx)
		if t.rand.IntN(4) == 0 {
			limited, cancel := context.WithTimeout(ctx, treeLimit)
			_ = own.Update(limited, instance{Name: serviceName, ID: w.Name, Port: t.rand.IntN(1 << 16)})
			cancel()
		}
		pause(ctx, t.between(0, longRest))
	}
	if ctx.Err() != nil {
		x.checkEnd()
	}
	limited, cancel := context.WithTimeout(context.Background(), treeLimit)
	defer cancel()
	_ = registry.Close(limited) // the rest continues in the background
}

// A registrantLife is the life of one registry.
type registrantLife struct {
	*worker
	registry *discovery.Registry[string]
	service  *discovery.Service[string]
	ready    bool // the service has had a list
}

func (x *registrantLife) register(in instance) *discovery.Registration[string] {
	in.Name = serviceName
	reg, err := x.registry.Register(in)
	if err != nil {
		panic(err)
	}
	if in.ID == permanentID { // so that each list has it
		ctx, cancel := context.WithTimeout(context.Background(), repairLimit)
		defer cancel()
		err := reg.Await(ctx)
		away := errors.Is(err, framework.ErrNotConnected) && x.client.State() != framework.Connected // no quorum, all that time
		if err != nil && !away && !errors.Is(err, node.ErrTaken) {                                   // by another worker
			x.found("liveness", "the permanent instance is not registered: %v", err)
		}
	}
	return reg
}

// look is the validator of "last good list": a list that was read once always has the permanent
// instance.
func (x *registrantLife) look(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, treeLimit)
	defer cancel()
	if !x.ready && x.service.Ready(limited) != nil {
		return
	}
	x.ready = true
	list := x.service.Instances()
	if !slices.ContainsFunc(list, func(in instance) bool { return in.ID == permanentID }) {
		x.found("last good list", "of %d instances none is the permanent one", len(list))
	}
	x.did(sawList)
	if _, stale := x.service.Stale(); stale {
		x.did(sawStaleList)
	}
}

// checkEnd is the validator of "registered instances" for the watched list: at some moment it is what a
// client reads.
func (x *registrantLife) checkEnd() {
	ctx := context.Background()
	if !await(ctx, endWait, func() bool {
		limited, cancel := context.WithTimeout(ctx, treeLimit)
		defer cancel()
		read, err := x.registry.Instances(limited, serviceName)
		return err == nil && maps.Equal(portsOf(x.service.Instances()), portsOf(read))
	}) {
		x.found("registered instances", "the list differs from what is registered for %v", endWait)
	}
}

// portsOf returns the ports of the instances, by ID.
func portsOf(list []instance) map[string]int {
	found := make(map[string]int)
	for _, in := range list {
		found[in.ID] = in.Port
	}
	return found
}

// checkInstances is the validator of "registered instances" for the tree, once all is well: at some
// moment the instances are those of the workers, and the permanent one.
func (r *run) checkInstances(t *testing.T) {
	t.Helper()
	registry := must.Get(discovery.New[string](connect(t, r.ensemble.Addr()), servicesRoot))(t)
	want := []string{permanentID}
	for _, s := range r.slots {
		want = append(want, s.current().name)
	}
	slices.Sort(want)
	var ids []string
	if !await(t.Context(), repairLimit, func() bool {
		read, err := registry.Instances(t.Context(), serviceName)
		ids = slices.Sorted(maps.Keys(portsOf(read)))
		return err == nil && slices.Equal(ids, want)
	}) {
		r.fail(fmt.Errorf("registered instances: %v are registered %v after the last fault, want %v", ids, repairLimit, want))
	}
	if err := registry.Close(t.Context()); err != nil && !errors.Is(err, framework.ErrClosed) {
		r.fail(err)
	}
}
