package watchreg_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/internal/proto"
)

// A model has a registry, the requests of its path under way, and a server. Each of its steps is one that the rest
// of the world may do next.
type model struct {
	*watchreg.Registry
	kinds   [2]watchreg.Kind // of the idle watch, and of the Subscription that comes back
	changes int              // that are still to happen
	back    *subscription    // nil before it comes back

	reads, removals []*request // not written yet
	line            []*request // written, and not served
	replies         []func()   // on their way, in order, with the events

	version int64
	watched map[bool]bool // the server's watches, by whether they are of children
}

// A request is a read, or a removal if that is nil.
type request struct {
	*read
	model *model
}

// Withdraw is part of Removal.
func (rq *request) Withdraw() bool {
	i := slices.Index(rq.model.removals, rq)
	if i >= 0 {
		rq.model.removals = slices.Delete(rq.model.removals, i, i+1)
	}
	return i >= 0
}

func newModel(kinds [2]watchreg.Kind) *model {
	m := &model{kinds: kinds, changes: 2, version: 1, watched: make(map[bool]bool)}
	m.Registry = watchreg.New(func(fn func()) { fn() }, func(string) watchreg.Removal {
		rq := &request{model: m}
		m.removals = append(m.removals, rq)
		return rq
	})
	watchreg.LimitIdle(m.Registry, 0)
	return m
}

// begin begins a Subscription, and waits for its read on a goroutine.
func (m *model) begin(kind watchreg.Kind, shared bool) *subscription {
	sub := &subscription{Subscription: new(watchreg.Subscription)}
	sub.begun = m.Begin(sub.Subscription, watchreg.Key{Kind: kind, Path: "/a"}, func(watch bool, answered func(*proto.Node)) watchreg.Read {
		r := &read{watch: watch, done: make(chan struct{}), answered: answered}
		m.reads = append(m.reads, &request{r, m})
		return r
	}, shared)
	return sub
}

// take removes and returns the first element.
func take[E any](list *[]E) E {
	first := (*list)[0]
	*list = (*list)[1:]
	return first
}

// serve has the server carry out the next request.
func (m *model) serve() {
	rq := take(&m.line)
	if rq.read == nil {
		clear(m.watched)
		m.replies = append(m.replies, func() { m.Removed("/a", rq, true) })
		return
	}
	if rq.watch {
		m.watched[m.kinds[1] == watchreg.Children] = true
	}
	version := m.version
	m.replies = append(m.replies, func() { rq.found(version) })
}

// change changes the znode's data.
func (m *model) change() {
	m.changes--
	m.version++
	if m.watched[false] {
		delete(m.watched, false)
		m.replies = append(m.replies, func() { m.Fire(watchreg.Changed, "/a") })
	}
}

// steps returns what can happen next.
func (m *model) steps(t *testing.T) (next []func()) {
	t.Helper()
	add := func(possible bool, step func()) {
		if possible {
			next = append(next, step)
		}
	}
	add(m.back == nil, func() {
		m.back = m.begin(m.kinds[1], false)
		go func() {
			if err := m.back.begun.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}()
	})
	add(len(m.reads) > 0, func() { m.line = append(m.line, take(&m.reads)) })
	add(len(m.removals) > 0, func() { m.line = append(m.line, take(&m.removals)) })
	add(len(m.line) > 0, m.serve)
	add(len(m.replies) > 0, func() { take(&m.replies)() })
	add(m.changes > 0, m.change)
	return next
}

// In every order of what can happen, a Subscription that comes back to a path whose watch is being removed knows of
// each change: it has found it, or fires.
func TestARemovalLosesNoEvent(t *testing.T) {
	const exists, data, names = watchreg.Exists, watchreg.Data, watchreg.Children
	synctest.Test(t, func(t *testing.T) {
		for _, kinds := range [][2]watchreg.Kind{{exists, exists}, {data, exists}, {names, data}} {
			orders := 0
			for order := []int{}; order != nil; orders++ {
				order = followOrder(t, newModel(kinds), order)
			}
			t.Logf("kinds %v: %d orders", kinds, orders)
		}
	})
}

// followOrder has the steps happen in the order, and continues with the first. It returns the next order, nil if there
// is none.
func followOrder(t *testing.T, m *model, order []int) (next []int) {
	t.Helper()
	idle := m.begin(m.kinds[0], false)
	m.watched[m.kinds[0] == watchreg.Children] = true
	take(&m.reads).found(1)
	idle.mustWait(t)
	idle.Close() // the removal is in the queue
	var done, of []int
	for steps := m.steps(t); len(steps) > 0; steps = m.steps(t) {
		choice := 0
		if len(done) < len(order) {
			choice = order[len(done)]
		}
		done, of = append(done, choice), append(of, len(steps))
		steps[choice]()
		synctest.Wait()
	}
	if found := m.back.Found().Stat.Mzxid; m.back.Event() == 0 && (found != m.version || !m.watched[m.kinds[1] == watchreg.Children]) {
		t.Errorf("order %v: found version %d of %d, and the server has watches %v; want the latest, and a watch", done, found, m.version, m.watched)
	}
	for i, choice := range slices.Backward(done) {
		if choice+1 < of[i] {
			return append(done[:i:i], choice+1)
		}
	}
	return nil
}

// A call may use the new connection before FireAll, and leave a watch there whose removal is under way.
func TestARemovalBeforeFireAllIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel([2]watchreg.Kind{watchreg.Data, watchreg.Data})
		m.Sever()
		early := m.begin(watchreg.Data, false)
		take(&m.reads).found(1)
		early.mustWait(t)
		early.Close()
		m.FireAll()
		if len(m.removals) != 1 {
			t.Fatalf("%d removals in the queue, want 1", len(m.removals))
		}
		if m.begin(watchreg.Data, false); len(m.removals) != 0 {
			t.Error("the removal takes the watch of the Subscription that came back")
		}
	})
}
