package interop_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/model"
)

// TestCuratorAtomicLong: both libraries add to one number, side by side.
func TestCuratorAtomicLong(t *testing.T) {
	t.Parallel()
	const rounds = 10
	path := pathOf(t)
	n := must.Get(counter.New(newClient(t), path))(t)
	java := newActor(t, curator)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range rounds {
			java.must(t, "add", path, "1")
		}
	})
	for range rounds {
		must.Get(n.Add(t.Context(), 100))(t)
	}
	wg.Wait()
	if got := java.must(t, "add", path, "0"); got[0] != strconv.Itoa(101*rounds) {
		t.Errorf("Curator counts to %s, want %d", got[0], 101*rounds)
	}
	if v, err := n.Add(t.Context(), 0); err != nil || v != 101*rounds {
		t.Errorf("docent counts to %d, %v; want %d", v, err, 101*rounds)
	}
}

// TestCuratorSharedValue: docent shows what Java sets, and Java reads what docent sets.
func TestCuratorSharedValue(t *testing.T) {
	t.Parallel()
	path, java := pathOf(t), newActor(t, curator)
	v := must.Get(counter.NewValue(newClient(t), path, model.Bytes()))(t)
	java.must(t, "share", path, encoded("theirs"))
	for data, err := range v.All(t.Context()) {
		must.OK(t, err)
		if string(data) == "theirs" { // the seed may come before
			break
		}
	}
	must.OK(t, v.Set(t.Context(), []byte("ours")))
	if got := java.must(t, "data", path); got[0] != encoded("ours") {
		t.Errorf("Curator reads %s, want docent's value", got[0])
	}
	must.OK(t, v.Set(t.Context(), nil))
	java.must(t, "share", path, encoded("theirs again")) // SharedValue.start throws if the znode holds null
}

// TestKazooCounts: docent, kazoo and Curator count in one znode, in Curator's format.
func TestKazooCounts(t *testing.T) {
	t.Parallel()
	path, java, python := pathOf(t), newActor(t, curator), newActor(t, kazoo)
	n := must.Get(counter.New(newClient(t), path, counter.WithInt32()))(t)
	for want := int64(5); want < 35; want += 15 {
		if v := must.Get(n.Add(t.Context(), 5))(t); v != want {
			t.Errorf("docent counts to %d, want %d", v, want)
		}
		for i, a := range []*actor{python, java} {
			if got := a.must(t, "count", path, "5"); got[0] != strconv.FormatInt(want+5*int64(i+1), 10) {
				t.Errorf("%s counts to %s, want %d", a.library, got[0], want+5*int64(i+1))
			}
		}
	}
}

// TestBarriersOfThreeLibraries: each sets a barrier and another removes it, and all wait for
// the removal.
func TestBarriersOfThreeLibraries(t *testing.T) {
	t.Parallel()
	java, python, path := newActor(t, curator), newActor(t, kazoo), pathOf(t)
	b := must.Get(barrier.New(newClient(t), path))(t)
	actors := []*actor{java, python}
	members := []struct {
		name     string
		bar, off func()
	}{
		{"Curator", func() { java.must(t, "bar", path) }, func() { java.must(t, "unbar", path) }},
		{"kazoo", func() { python.must(t, "bar", path) }, func() { python.must(t, "unbar", path) }},
		{"docent", func() { must.OK(t, b.Set(t.Context())) }, func() { must.OK(t, b.Remove(t.Context())) }},
	}
	for i, m := range members {
		m.bar()
		done := make(chan error, 1)
		go func() { done <- b.Wait(t.Context()) }()
		for _, a := range actors {
			if _, passed, err := a.do("pass", path, "100").wait(); err != nil || passed {
				t.Errorf("%s passes the barrier of %s: %v", a.library, m.name, err)
			}
		}
		if len(done) > 0 {
			t.Errorf("docent passes the barrier of %s: %v", m.name, <-done)
		}
		members[(i+1)%len(members)].off()
		must.OK(t, <-done)
		for _, a := range actors {
			if _, passed, err := a.do("pass", path, "30000").wait(); err != nil || !passed {
				t.Errorf("%s does not pass after the barrier of %s: %v", a.library, m.name, err)
			}
		}
	}
}

// TestDoubleBarrierOfThreeLibraries: one member of each library enters and leaves, in several
// rounds.
func TestDoubleBarrierOfThreeLibraries(t *testing.T) {
	t.Parallel()
	java, python, path := newActor(t, curator), newActor(t, kazoo), pathOf(t)
	c := newClient(t)
	d := must.Get(barrier.NewDouble(c, path, 3))(t)
	await := func(theirs []*call) {
		t.Helper()
		for _, c := range theirs {
			if _, ok, err := c.wait(); err != nil || !ok {
				t.Fatalf("%s: %v, %v", c.text, ok, err)
			}
		}
	}
	for range 3 {
		theirs := []*call{java.do("enter", path, "3", "30000"), python.do("enter", path, "3", "30000")}
		l := must.Get(d.Enter(t.Context()))(t)
		await(theirs)
		theirs = []*call{java.do("leave", path, "3", "30000"), python.do("leave", path, "3", "30000")}
		must.OK(t, d.Leave(t.Context(), l))
		await(theirs)
		if n := len(ephemerals(t, c, path)); n > 0 {
			t.Errorf("%d members are left after all have left", n)
		}
	}
}
