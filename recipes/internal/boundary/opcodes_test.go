package boundary_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/recipetest"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/discovery"
	"github.com/docent-go/docent/recipes/group"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/model"
	"github.com/docent-go/docent/recipes/node"
	"github.com/docent-go/docent/recipes/partition"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/zkserver"
)

// A trip uses a recipe once, by two clients where one waits for the other. pause lets a waiter wait, and
// cuts all connections, so that watches are set again.
type trip struct {
	name string
	use  tripFunc
}

type tripFunc func(t *testing.T, c, other *framework.Client, path string, pause func())

// trips returns a trip of each recipe.
func trips() []trip {
	return []trip{
		{"mutex", turns(func(_ *testing.T, c *framework.Client, path string) (lock.Locker, error) {
			return lock.NewMutex(c, path)
		})},
		{"read side", turns(func(t *testing.T, c *framework.Client, path string) (lock.Locker, error) {
			return must.Get(lock.NewRWMutex(c, path))(t).Read(), nil
		})},
		{"write side", turns(func(t *testing.T, c *framework.Client, path string) (lock.Locker, error) {
			return must.Get(lock.NewRWMutex(c, path))(t).Write(), nil
		})},
		{"semaphore mutex", turns(func(_ *testing.T, c *framework.Client, path string) (lock.Locker, error) {
			return lock.NewSemaphoreMutex(c, path)
		})},
		{"unfair mutex", turns(func(_ *testing.T, c *framework.Client, path string) (lock.Locker, error) {
			return lock.NewUnfairMutex(c, path)
		})},
		{"multi", turns(func(t *testing.T, c *framework.Client, path string) (lock.Locker, error) {
			var all []lock.Locker
			for i := range 3 {
				all = append(all, must.Get(lock.NewMutex(c, fmt.Sprint(path, "/", i)))(t))
			}
			return lock.NewMulti(all...)
		})},
		{"local", turns(func(t *testing.T, c *framework.Client, path string) (lock.Locker, error) {
			return lock.NewLocal(must.Get(lock.NewMutex(c, path))(t), 10)
		})},
		{"leader", ledInTurn},
		{"semaphore", permitsInTurn},
		{"barrier", waited},
		{"double barrier", entered},
		{"counter", counted},
		{"value", valued},
		{"node", kept},
		{"group", joined},
		{"cache", cached},
		{"discovery", registered},
		{"partition", partitioned},
	}
}

// turns has two clients hold the lock one after the other.
func turns(newLock func(*testing.T, *framework.Client, string) (lock.Locker, error)) tripFunc {
	return func(t *testing.T, c, other *framework.Client, path string, pause func()) {
		inTurn(t, must.Get(newLock(t, c, path))(t).Lock, must.Get(newLock(t, other, path))(t).Lock, pause)
	}
}

func ledInTurn(t *testing.T, c, other *framework.Client, path string, pause func()) {
	t.Helper()
	first, second := must.Get(leader.New(c, path))(t), must.Get(leader.New(other, path))(t)
	inTurn(t, first.Campaign, second.Campaign, pause)
	if all := must.Get(first.Participants(t.Context()))(t); len(all) != 0 {
		t.Errorf("participants %v", all)
	}
}

func permitsInTurn(t *testing.T, c, other *framework.Client, path string, pause func()) {
	t.Helper()
	acquire := func(c *framework.Client) func(context.Context) (*lease.Lease, error) {
		s := must.Get(semaphore.New(c, path, 2))(t)
		return func(ctx context.Context) (*lease.Lease, error) { return s.Acquire(ctx, 2) }
	}
	inTurn(t, acquire(c), acquire(other), pause)
}

// inTurn acquires by both, the second while the first holds.
func inTurn(t *testing.T, first, second func(context.Context) (*lease.Lease, error), pause func()) {
	t.Helper()
	ctx := within(t, tripTime)
	held := must.Get(first(ctx))(t)
	next := recipetest.Later(ctx, second)
	pause()
	must.OK(t, held.Release(ctx))
	got := <-next
	must.OK(t, got.Err)
	must.OK(t, got.Lease.Release(ctx))
}

func waited(t *testing.T, c, other *framework.Client, path string, pause func()) {
	t.Helper()
	ctx := within(t, tripTime)
	b, theirs := must.Get(barrier.New(c, path))(t), must.Get(barrier.New(other, path))(t)
	must.OK(t, b.Set(ctx))
	done := make(chan error, 1)
	go func() { done <- theirs.Wait(ctx) }()
	pause()
	must.OK(t, errors.Join(b.Remove(ctx), <-done))
}

func entered(t *testing.T, c, other *framework.Client, path string, pause func()) {
	t.Helper()
	ctx := within(t, tripTime)
	through := func(c *framework.Client) <-chan error {
		d := must.Get(barrier.NewDouble(c, path, 2))(t)
		done := make(chan error, 1)
		go func() {
			place, err := d.Enter(ctx)
			if err == nil {
				err = d.Leave(ctx, place)
			}
			done <- err
		}()
		return done
	}
	first := through(c)
	pause()
	must.OK(t, errors.Join(<-through(other), <-first))
}

func counted(t *testing.T, c, other *framework.Client, path string, pause func()) {
	t.Helper()
	ctx := within(t, tripTime)
	n, theirs := must.Get(counter.New(c, path))(t), must.Get(counter.New(other, path))(t)
	must.Get(n.Add(ctx, 2))(t)
	pause()
	if got := must.Get(theirs.Add(ctx, 3))(t); got != 5 {
		t.Errorf("the number is %d, want 5", got)
	}
}

func valued(t *testing.T, c, other *framework.Client, path string, pause func()) {
	t.Helper()
	ctx := within(t, tripTime)
	v := must.Get(counter.NewValue(c, path, model.JSON[int]()))(t)
	theirs := must.Get(counter.NewValue(other, path, model.JSON[int]()))(t)
	must.OK(t, v.Set(ctx, 1))
	set := make(chan error, 1)
	go func() { pause(); set <- v.Set(ctx, 2) }()
	must.OK(t, errors.Join(await(theirs.All(ctx), func(value int) bool { return value == 2 }), <-set))
}

func kept(t *testing.T, c, other *framework.Client, path string, pause func()) {
	t.Helper()
	ctx := within(t, tripTime)
	n := must.Get(node.New(c, path, []byte("1")))(t)
	must.OK(t, n.Await(ctx))
	must.OK(t, other.Delete(ctx, path))
	pause() // it creates the znode again
	must.OK(t, errors.Join(n.Await(ctx), n.Set(ctx, []byte("2"))))
	if data, _ := must.Get2(other.Get(ctx, path))(t); string(data) != "2" {
		t.Errorf("data %q, want 2", data)
	}
	must.OK(t, n.Close(ctx))
}

func joined(t *testing.T, c, other *framework.Client, path string, pause func()) {
	t.Helper()
	ctx := within(t, tripTime)
	g, theirs := must.Get(group.New(c, path))(t), must.Get(group.New(other, path))(t)
	must.OK(t, must.Get(g.Join("a", []byte("1")))(t).Await(ctx))
	both := make(chan error, 1)
	go func() {
		both <- await(theirs.Changes(ctx), func(all []group.Member) bool { return len(all) == 2 })
	}()
	pause()
	must.Get(g.Join("b", []byte("2")))(t)
	must.OK(t, errors.Join(<-both, theirs.Close(ctx), g.Close(ctx)))
}

func cached(t *testing.T, c, other *framework.Client, path string, pause func()) {
	t.Helper()
	ctx := within(t, tripTime)
	must.Get(other.Create(ctx, path+"/a", []byte("1"), framework.WithParents()))(t)
	made := must.Get(cache.New(c, path))(t)
	must.OK(t, made.Ready(ctx))
	pause()
	must.Get(other.Create(ctx, path+"/b", []byte("2")))(t)
	must.OK(t, made.Sync(ctx))
	if b, ok := made.Get(path + "/b"); !ok || string(b.Data) != "2" || made.Snapshot().Len() != 3 {
		t.Errorf("%d znodes, b is %v, %v", made.Snapshot().Len(), b, ok)
	}
	must.OK(t, made.Close())
}

func registered(t *testing.T, c, other *framework.Client, path string, pause func()) {
	t.Helper()
	ctx := within(t, tripTime)
	registry, theirs := must.Get(discovery.New[int](c, path))(t), must.Get(discovery.New[int](other, path))(t)
	must.OK(t, must.Get(registry.Register(discovery.Instance[int]{Name: "web", ID: "a", Port: 80}))(t).Await(ctx))
	s := must.Get(theirs.Watch("web"))(t)
	pause()
	must.OK(t, await(s.Changes(ctx), func(all []discovery.Instance[int]) bool { return len(all) == 1 }))
	if all := must.Get(theirs.Instances(ctx, "web"))(t); len(all) != 1 {
		t.Errorf("instances %v", all)
	}
	must.OK(t, errors.Join(s.Close(), theirs.Close(ctx), registry.Close(ctx)))
}

func partitioned(t *testing.T, c, _ *framework.Client, path string, pause func()) {
	t.Helper()
	p := must.Get(partition.New(c, path, []string{"a", "b"}, recipes.WithSettle(0)))(t)
	ctx, cancel := context.WithCancel(within(t, tripTime))
	defer cancel()
	serving := make(chan string, 10)
	done := make(chan error, 1)
	go func() {
		done <- p.Run(ctx, func(ctx context.Context, key string, _ *lease.Lease) error {
			serving <- key
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	if first, second := <-serving, <-serving; first == second {
		t.Errorf("key %s is served twice", first)
	}
	pause()
	owners := must.Get(p.Owners(ctx))(t)
	cancel()
	recipetest.Fails(t, "Run", <-done, context.Canceled)
	if len(owners) != 2 {
		t.Errorf("owners %v", owners)
	}
}

// await returns when a value is as wanted.
func await[T any](all iter.Seq2[T, error], wanted func(T) bool) error {
	var last error
	for value, err := range all {
		if err == nil && wanted(value) {
			return nil
		}
		last = err
	}
	return errors.Join(errors.New("the values end"), last)
}

// optional returns the operations that a server may lack, each alone, and all of them.
func optional() map[string][]int32 {
	sets := map[string][]int32{"nothing": nil, "Keeper": zkserver.KeeperLacks(), "Keeper 2026": zkserver.Keeper2026Lacks()}
	for name, op := range map[string]proto.Opcode{
		"create2": proto.OpCreate2, "createContainer": proto.OpCreateContainer, "createTTL": proto.OpCreateTTL, "addWatch": proto.OpAddWatch,
		"multiRead": proto.OpMultiRead, "removeWatches": proto.OpRemoveWatches, "checkWatches": proto.OpCheckWatches,
		"getEphemerals": proto.OpGetEphemerals, "getAllChildrenNumber": proto.OpCountChildren, "whoAmI": proto.OpWhoAmI,
		"setWatches": proto.OpSetWatches, "setWatches2": proto.OpSetWatches2, "SASL": proto.OpSASL,
	} {
		sets[name] = []int32{int32(op)}
	}
	return sets
}

// tripTime bounds a trip: some session timeouts.
const tripTime = 5 * time.Minute

// TestRecipesWithoutAnOperation uses each recipe on a server that lacks an operation: twice, because a client
// knows the server by the second time.
func TestRecipesWithoutAnOperation(t *testing.T) {
	t.Parallel()
	for what, lacks := range optional() {
		for _, silent := range []bool{false, true} {
			for _, x := range trips() {
				t.Run(fmt.Sprintf("%s/%s, silent %v", x.name, what, silent), func(t *testing.T) {
					t.Parallel()
					opts := []zkserver.Option{zkserver.WithVersion(zkserver.DefaultVersion), zkserver.WithoutOpcodes(lacks...)}
					if silent {
						opts = append(opts, zkserver.WithoutReplyToUnknown())
					}
					synctest.Test(t, func(t *testing.T) {
						srv := zkserver.Run(t, opts...)
						c, other := connected(t, srv), connected(t, srv)
						pause := func() {
							<-time.After(2 * time.Second)
							srv.Cut()
							<-time.After(2 * time.Second)
						}
						for _, path := range []string{"/first/path", "/second/path"} {
							x.use(t, c, other, path, pause)
						}
					})
				})
			}
		}
	}
}
