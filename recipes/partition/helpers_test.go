package partition_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/partition"
	"github.com/docent-go/docent/testing/zktest"
)

// generous bounds what has to happen at some time, on a machine as slow as it may be.
const generous = 40 * time.Second

// settle is short, so that tests are.
const settle = 200 * time.Millisecond

var names, owners = partition.Names, partition.Owners

// An oracle knows which member serves each key, outside ZooKeeper.
type oracle struct {
	mu     sync.Mutex
	at     map[string]string // member, by key
	fences map[string]int64  // the last one of each key
	serves int
	faults []string
	causes []error       // of the ends of contexts
	linger time.Duration // how long a server goes on after its key has moved
	wrong  error         // what a server returns when its context has ended; nil for the context's error
}

func newOracle(t testing.TB) *oracle {
	t.Helper()
	o := &oracle{at: make(map[string]string), fences: make(map[string]int64)}
	t.Cleanup(func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, fault := range o.faults {
			t.Error(fault)
		}
	})
	return o
}

// serve returns what the member serves keys with. A server whose lease is lost stops at once.
func (o *oracle) serve(id string) func(context.Context, string, *lease.Lease) error {
	return func(ctx context.Context, key string, l *lease.Lease) error {
		o.enter(id, key, l.Fence())
		select {
		case <-ctx.Done():
		case <-l.Lost():
		}
		if l.Err() == nil && o.linger > 0 {
			select {
			case <-time.After(o.linger):
			case <-l.Lost():
			}
		}
		o.leave(id, key, context.Cause(ctx))
		return cmp.Or(o.wrong, ctx.Err())
	}
}

func (o *oracle) enter(id, key string, fence int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if other, ok := o.at[key]; ok {
		o.faults = append(o.faults, fmt.Sprintf("%s is served by %s and by %s", key, other, id))
	}
	if fence <= o.fences[key] {
		o.faults = append(o.faults, fmt.Sprintf("%s: fence %d after %d", key, fence, o.fences[key]))
	}
	o.at[key], o.fences[key] = id, fence
	o.serves++
}

func (o *oracle) leave(id, key string, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at[key] == id {
		delete(o.at, key)
	}
	o.causes = append(o.causes, cause)
}

func (o *oracle) now() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.at)
}

// count returns how often a key was begun to be served.
func (o *oracle) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.serves
}

// await waits until the members serve the keys as they are divided.
func (o *oracle) await(t testing.TB, keys []string, members ...string) {
	t.Helper()
	want := owners(partition.Divide(keys, members))
	zktest.Eventually(t, generous, fmt.Sprintf("%d keys are served by %v", len(keys), members), func() bool { return maps.Equal(o.now(), want) })
}

// A member is a running partition.
type member struct {
	*partition.Partition
	cancel context.CancelFunc
	done   chan struct{}
	err    error // once done is closed
}

// start runs a member until leave, or the end of the test.
func (o *oracle) start(
	t testing.TB, c *framework.Client, path, id string, keys []string, opts ...partition.Option,
) *member {
	t.Helper()
	p := must.Get(partition.New(c, path, keys,
		append([]partition.Option{partition.WithID(id), recipes.WithSettle(settle)}, opts...)...))(t)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	m := &member{p, cancel, make(chan struct{}), nil}
	go func() {
		defer close(m.done)
		m.err = p.Run(ctx, o.serve(id))
	}()
	t.Cleanup(func() { m.leave(t) })
	return m
}

// leave ends the member, and waits for it.
func (m *member) leave(t testing.TB) {
	t.Helper()
	m.cancel()
	<-m.done
	if !errors.Is(m.err, context.Canceled) && !errors.Is(m.err, framework.ErrClosed) {
		t.Errorf("Run: %v, want the context's end", m.err)
	}
}
