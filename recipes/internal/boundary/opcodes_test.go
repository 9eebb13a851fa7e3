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
	"github.com/docent-go/docent/internal/proto"
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
	use  func(ctx context.Context, c, other *framework.Client, path string, pause func()) error
}

// trips returns a trip of each recipe.
func trips() []trip {
	return []trip{
		{"mutex", turns(func(c *framework.Client, path string) (lock.Locker, error) { return lock.NewMutex(c, path) })},
		{"read side", turns(func(c *framework.Client, path string) (lock.Locker, error) {
			rw, err := lock.NewRWMutex(c, path)
			return rw.Read(), err
		})},
		{"write side", turns(func(c *framework.Client, path string) (lock.Locker, error) {
			rw, err := lock.NewRWMutex(c, path)
			return rw.Write(), err
		})},
		{"semaphore mutex", turns(func(c *framework.Client, path string) (lock.Locker, error) { return lock.NewSemaphoreMutex(c, path) })},
		{"unfair mutex", turns(func(c *framework.Client, path string) (lock.Locker, error) { return lock.NewUnfairMutex(c, path) })},
		{"multi", turns(func(c *framework.Client, path string) (lock.Locker, error) {
			var all []lock.Locker
			for i := range 3 {
				m, err := lock.NewMutex(c, fmt.Sprint(path, "/", i))
				if err != nil {
					return nil, err
				}
				all = append(all, m)
			}
			return lock.NewMulti(all...)
		})},
		{"local", turns(func(c *framework.Client, path string) (lock.Locker, error) {
			m, err := lock.NewMutex(c, path)
			if err != nil {
				return nil, err
			}
			return lock.NewLocal(m, 10)
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
func turns(newLock func(c *framework.Client, path string) (lock.Locker, error)) func(context.Context, *framework.Client, *framework.Client, string, func()) error {
	return func(ctx context.Context, c, other *framework.Client, path string, pause func()) error {
		first, err := newLock(c, path)
		if err != nil {
			return err
		}
		second, err := newLock(other, path)
		if err != nil {
			return err
		}
		return inTurn(ctx, first.Lock, second.Lock, pause)
	}
}

func ledInTurn(ctx context.Context, c, other *framework.Client, path string, pause func()) error {
	first, err := leader.New(c, path)
	if err != nil {
		return err
	}
	second, err := leader.New(other, path)
	if err != nil {
		return err
	}
	if err := inTurn(ctx, first.Campaign, second.Campaign, pause); err != nil {
		return err
	}
	if all, err := first.Participants(ctx); err != nil || len(all) != 0 {
		return fmt.Errorf("participants %v, %w", all, err)
	}
	return nil
}

func permitsInTurn(ctx context.Context, c, other *framework.Client, path string, pause func()) error {
	acquire := func(c *framework.Client) func(context.Context) (*lease.Lease, error) {
		return func(ctx context.Context) (*lease.Lease, error) {
			s, err := semaphore.New(c, path, 2)
			if err != nil {
				return nil, err
			}
			return s.Acquire(ctx, 2)
		}
	}
	return inTurn(ctx, acquire(c), acquire(other), pause)
}

// inTurn acquires by both, the second while the first holds.
func inTurn(ctx context.Context, first, second func(context.Context) (*lease.Lease, error), pause func()) error {
	held, err := first(ctx)
	if err != nil {
		return fmt.Errorf("first: %w", err)
	}
	next := make(chan error, 1)
	go func() {
		l, err := second(ctx)
		if err == nil {
			err = l.Release(ctx)
		}
		next <- err
	}()
	pause()
	if err := held.Release(ctx); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return <-next
}

func waited(ctx context.Context, c, other *framework.Client, path string, pause func()) error {
	b, err := barrier.New(c, path)
	if err != nil {
		return err
	}
	theirs, err := barrier.New(other, path)
	if err != nil {
		return err
	}
	if err := b.Set(ctx); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- theirs.Wait(ctx) }()
	pause()
	return errors.Join(b.Remove(ctx), <-done)
}

func entered(ctx context.Context, c, other *framework.Client, path string, pause func()) error {
	through := func(c *framework.Client) <-chan error {
		done := make(chan error, 1)
		go func() {
			d, err := barrier.NewDouble(c, path, 2)
			if err != nil {
				done <- err
				return
			}
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
	return errors.Join(<-through(other), <-first)
}

func counted(ctx context.Context, c, other *framework.Client, path string, pause func()) error {
	n, err := counter.New(c, path)
	if err != nil {
		return err
	}
	theirs, err := counter.New(other, path)
	if err != nil {
		return err
	}
	if _, err := n.Add(ctx, 2); err != nil {
		return err
	}
	pause()
	if got, err := theirs.Add(ctx, 3); err != nil || got != 5 {
		return fmt.Errorf("the number is %d, want 5: %w", got, err)
	}
	return nil
}

func valued(ctx context.Context, c, other *framework.Client, path string, pause func()) error {
	v, err := counter.NewValue(c, path, model.JSON[int]())
	if err != nil {
		return err
	}
	theirs, err := counter.NewValue(other, path, model.JSON[int]())
	if err != nil {
		return err
	}
	if err := v.Set(ctx, 1); err != nil {
		return err
	}
	set := make(chan error, 1)
	go func() { pause(); set <- v.Set(ctx, 2) }()
	return errors.Join(await(theirs.All(ctx), func(value int) bool { return value == 2 }), <-set)
}

func kept(ctx context.Context, c, other *framework.Client, path string, pause func()) error {
	n, err := node.New(c, path, []byte("1"))
	if err != nil {
		return err
	}
	if err := n.Await(ctx); err != nil {
		return err
	}
	if err := other.Delete(ctx, path); err != nil {
		return err
	}
	pause() // it creates the znode again
	if err := errors.Join(n.Await(ctx), n.Set(ctx, []byte("2"))); err != nil {
		return err
	}
	if data, _, err := other.Get(ctx, path); err != nil || string(data) != "2" {
		return fmt.Errorf("data %q, want 2: %w", data, err)
	}
	return n.Close(ctx)
}

func joined(ctx context.Context, c, other *framework.Client, path string, pause func()) error {
	g, err := group.New(c, path)
	if err != nil {
		return err
	}
	theirs, err := group.New(other, path)
	if err != nil {
		return err
	}
	n, err := g.Join("a", []byte("1"))
	if err != nil {
		return err
	}
	if err := n.Await(ctx); err != nil {
		return err
	}
	both := make(chan error, 1)
	go func() {
		both <- await(theirs.Changes(ctx), func(all []group.Member) bool { return len(all) == 2 })
	}()
	pause()
	_, err = g.Join("b", []byte("2"))
	return errors.Join(err, <-both, theirs.Close(ctx), g.Close(ctx))
}

func cached(ctx context.Context, c, other *framework.Client, path string, pause func()) error {
	if _, err := other.Create(ctx, path+"/a", []byte("1"), framework.WithParents()); err != nil {
		return err
	}
	made, err := cache.New(c, path)
	if err != nil {
		return err
	}
	if err := made.Ready(ctx); err != nil {
		return err
	}
	pause()
	if _, err := other.Create(ctx, path+"/b", []byte("2")); err != nil {
		return err
	}
	if err := made.Sync(ctx); err != nil {
		return err
	}
	if b, ok := made.Get(path + "/b"); !ok || string(b.Data) != "2" || made.Snapshot().Len() != 3 {
		return fmt.Errorf("%d znodes, b is %v, %v", made.Snapshot().Len(), b, ok)
	}
	return made.Close()
}

func registered(ctx context.Context, c, other *framework.Client, path string, pause func()) error {
	registry, err := discovery.New[int](c, path)
	if err != nil {
		return err
	}
	theirs, err := discovery.New[int](other, path)
	if err != nil {
		return err
	}
	r, err := registry.Register(discovery.Instance[int]{Name: "web", ID: "a", Port: 80})
	if err != nil {
		return err
	}
	if err := r.Await(ctx); err != nil {
		return err
	}
	s, err := theirs.Watch("web")
	if err != nil {
		return err
	}
	pause()
	if err := await(s.Changes(ctx), func(all []discovery.Instance[int]) bool { return len(all) == 1 }); err != nil {
		return err
	}
	if all, err := theirs.Instances(ctx, "web"); err != nil || len(all) != 1 {
		return fmt.Errorf("instances %v, %w", all, err)
	}
	return errors.Join(s.Close(), theirs.Close(ctx), registry.Close(ctx))
}

func partitioned(ctx context.Context, c, _ *framework.Client, path string, pause func()) error {
	p, err := partition.New(c, path, []string{"a", "b"}, recipes.WithSettle(0))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
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
		cancel()
		return fmt.Errorf("key %s is served twice", first)
	}
	pause()
	owners, err := p.Owners(ctx)
	cancel()
	if ended := <-done; !errors.Is(ended, context.Canceled) {
		return ended
	}
	if err != nil || len(owners) != 2 {
		return fmt.Errorf("owners %v, %w", owners, err)
	}
	return nil
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
							if err := x.use(within(t, tripTime), c, other, path, pause); err != nil {
								t.Errorf("%s: %v", path, err)
							}
						}
					})
				})
			}
		}
	}
}
