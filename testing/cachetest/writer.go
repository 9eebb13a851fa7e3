package cachetest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/docent-go/docent/framework"
)

// A writer changes the tree at a path, and knows every state that it has had. Each write has a
// number of its own as data, which grows.
type writer struct {
	client *framework.Client // whose requests meet no fault
	root   string
	random *rand.Rand

	mu     sync.Mutex // guards following
	now    map[string]string
	states []string // as keys, in order
	last   int      // the number of the latest write
}

func newWriter(c *framework.Client, root string, seed uint64) *writer {
	return &writer{
		client: c, root: root, random: rand.New(rand.NewPCG(seed, 1)),
		now: make(map[string]string), states: []string{""},
	}
}

// key returns a state as text, to compare by.
func key(state map[string]string) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(state)) {
		fmt.Fprintf(&b, "%s=%s ", path, state[path])
	}
	return b.String()
}

// write makes one change at random: a transaction of up to three operations, or the recreation of a
// part of the tree.
func (w *writer) write(ctx context.Context, t testing.TB) {
	t.Helper()
	w.mu.Lock()
	next := maps.Clone(w.now)
	var ops []framework.TxnOp
	if w.random.IntN(5) == 0 {
		ops = w.recreation(next)
	}
	for len(ops) == 0 || len(ops) < 3 && w.random.IntN(2) == 0 {
		ops = append(ops, w.operation(next))
	}
	// The state counts from before the request, because a cache may see it before the reply.
	w.now = next
	w.states = append(w.states, key(next))
	w.mu.Unlock()
	if _, err := w.client.Txn(ctx, ops...); err != nil {
		t.Error(err)
	}
}

// operation returns one that is possible in state, and makes it there.
func (w *writer) operation(state map[string]string) framework.TxnOp {
	w.last++
	data := strconv.Itoa(w.last)
	path := w.root
	for range w.random.IntN(4) {
		if _, ok := state[path]; !ok {
			break
		}
		path += "/" + string(rune('a'+w.random.IntN(3)))
	}
	_, exists := state[path]
	leaf := !slices.ContainsFunc(slices.Collect(maps.Keys(state)), func(other string) bool {
		return strings.HasPrefix(other, path+"/")
	})
	switch {
	case exists && leaf && w.random.IntN(2) == 0:
		delete(state, path)
		return framework.OpDelete(path, framework.AnyVersion)
	case exists:
		state[path] = data
		return framework.OpSet(path, []byte(data), framework.AnyVersion)
	default:
		state[path] = data
		return framework.OpCreate(path, []byte(data))
	}
}

// recreation deletes a znode with all that is below it, and creates it again with its children. It
// returns nothing if there is no such znode.
func (w *writer) recreation(state map[string]string) (ops []framework.TxnOp) {
	path := w.root
	for range w.random.IntN(3) {
		path += "/" + string(rune('a'+w.random.IntN(3))) //nolint:modernize // at most twice
	}
	if _, exists := state[path]; !exists {
		return nil
	}
	var again []framework.TxnOp
	for _, at := range slices.Sorted(maps.Keys(state)) { // parents first
		if at != path && !strings.HasPrefix(at, path+"/") {
			continue
		}
		ops = slices.Insert(ops, 0, framework.OpDelete(at, framework.AnyVersion))
		if delete(state, at); strings.Count(at, "/") <= strings.Count(path, "/")+1 {
			w.last++
			state[at] = strconv.Itoa(w.last)
			again = append(again, framework.OpCreate(at, []byte(state[at])))
		}
	}
	return append(ops, again...)
}

// present returns the latest state.
func (w *writer) present() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.states[len(w.states)-1]
}

// index returns the number of the first state that is the key, from a number on.
func (w *writer) index(key string, from int) (int, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.states[from:], key)
	return from + i, i >= 0
}
