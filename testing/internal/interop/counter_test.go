package interop_test

import (
	"encoding/base64"
	"strconv"
	"sync"
	"testing"

	"github.com/docent-go/docent/internal/check"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/counter"
)

// TestCuratorAtomicLong: both libraries add to one number, side by side.
func TestCuratorAtomicLong(t *testing.T) {
	t.Parallel()
	const rounds = 10
	path := pathOf(t)
	n, err := counter.New(newClient(t), path)
	must.OK(t, err)
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
	got := java.must(t, "add", path, "0")
	check.That(t, got[0] == strconv.Itoa(101*rounds), "Curator counts to %s, want %d", got[0], 101*rounds)
	check.Equal(t, must.Get(n.Add(t.Context(), 0))(t), 101*rounds, "docent counts to")
}

// TestCuratorSharedValue: docent shows what Java sets, and Java reads what docent sets.
func TestCuratorSharedValue(t *testing.T) {
	t.Parallel()
	path, java := pathOf(t), newActor(t, curator)
	v, err := counter.NewValue(newClient(t), path, counter.Bytes())
	must.OK(t, err)
	word := func(text string) string { return "=" + base64.StdEncoding.EncodeToString([]byte(text)) }
	java.must(t, "share", path, word("theirs"))
	for data, err := range v.All(t.Context()) {
		must.OK(t, err)
		if string(data) == "theirs" { // the seed may come before
			break
		}
	}
	must.OK(t, v.Set(t.Context(), []byte("ours")))
	got := java.must(t, "data", path)
	check.That(t, got[0] == word("ours"), "Curator reads %s, want docent's value", got[0])
}

// TestKazooCounts: docent and kazoo count in one znode, in Curator's format.
func TestKazooCounts(t *testing.T) {
	t.Parallel()
	path, python := pathOf(t), newActor(t, kazoo)
	n, err := counter.New(newClient(t), path, counter.WithInt32())
	must.OK(t, err)
	for want := int64(5); want < 20; want += 10 {
		check.Equal(t, must.Get(n.Add(t.Context(), 5))(t), want, "docent counts to")
		got := python.must(t, "count", path, "5")
		check.That(t, got[0] == strconv.FormatInt(want+5, 10), "kazoo counts to %s, want %d", got[0], want+5)
	}
}

// TestBarriersOfThreeLibraries: each sets a barrier, and the others wait for its removal.
func TestBarriersOfThreeLibraries(t *testing.T) {
	t.Parallel()
	java, python, path := newActor(t, curator), newActor(t, kazoo), pathOf(t)
	b, err := barrier.New(newClient(t), path)
	must.OK(t, err)
	set := map[string]func(){
		"Curator": func() { java.must(t, "bar", path) }, "kazoo": func() { python.must(t, "bar", path) },
		"docent": func() {
			must.OK(t, b.Set(t.Context()))
		},
	}
	for name, bar := range set {
		bar()
		done := make(chan error, 1)
		go func() { done <- b.Wait(t.Context()) }()
		for _, a := range []*actor{java, python} {
			check.Equal(t, must.Second(a.do("pass", path, "100").wait())(t), false,
				"%s passes the barrier of %s", a.library, name)
		}
		if len(done) > 0 {
			t.Errorf("docent passes the barrier of %s: %v", name, <-done)
		}
		must.OK(t, b.Remove(t.Context()))
		check.OK(t, <-done)
		for _, a := range []*actor{java, python} {
			check.Equal(t, must.Second(a.do("pass", path, "30000").wait())(t), true,
				"%s does not pass after the barrier of %s", a.library, name)
		}
	}
}

// TestDoubleBarrierOfThreeLibraries: one member of each library enters and leaves, in several
// rounds.
func TestDoubleBarrierOfThreeLibraries(t *testing.T) {
	t.Parallel()
	java, python, path := newActor(t, curator), newActor(t, kazoo), pathOf(t)
	c := newClient(t)
	d, err := barrier.NewDouble(c, path, 3)
	must.OK(t, err)
	for range 3 {
		theirs := []*call{java.do("enter", path, "3", "30000"), python.do("enter", path, "3", "30000")}
		l, err := d.Enter(t.Context())
		must.OK(t, err)
		for _, c := range theirs {
			must.Equal(t, must.Second(c.wait())(t), true, "enter")
		}
		theirs = []*call{java.do("leave", path, "3", "30000"), python.do("leave", path, "3", "30000")}
		must.OK(t, d.Leave(t.Context(), l))
		for _, c := range theirs {
			must.Equal(t, must.Second(c.wait())(t), true, "leave")
		}
		check.AtMost(t, len(ephemerals(t, c, path)), 0, "members are left after all have left")
	}
}
