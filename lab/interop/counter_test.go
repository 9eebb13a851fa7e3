package interop_test

import (
	"encoding/base64"
	"strconv"
	"sync"
	"testing"

	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/counter"
	"github.com/docent-go/docent/recipes/model"
)

// TestCuratorAtomicLong: both libraries add to one number, side by side.
func TestCuratorAtomicLong(t *testing.T) {
	t.Parallel()
	const rounds = 10
	path := pathOf(t)
	n, err := counter.New(newClient(t), path)
	if err != nil {
		t.Fatal(err)
	}
	java := newActor(t, curator)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range rounds {
			java.must(t, "add", path, "1")
		}
	})
	for range rounds {
		if _, err := n.Add(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
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
	v, err := counter.NewValue(newClient(t), path, model.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	word := func(text string) string { return "=" + base64.StdEncoding.EncodeToString([]byte(text)) }
	java.must(t, "share", path, word("theirs"))
	for data, err := range v.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if string(data) == "theirs" { // the seed may come before
			break
		}
	}
	if err := v.Set(t.Context(), []byte("ours")); err != nil {
		t.Fatal(err)
	}
	if got := java.must(t, "data", path); got[0] != word("ours") {
		t.Errorf("Curator reads %s, want docent's value", got[0])
	}
	if err := v.Set(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	java.must(t, "share", path, word("theirs again")) // SharedValue.start throws if the znode holds null
}

// TestKazooCounts: docent and kazoo count in one znode, in Curator's format.
func TestKazooCounts(t *testing.T) {
	t.Parallel()
	path, python := pathOf(t), newActor(t, kazoo)
	n, err := counter.New(newClient(t), path, counter.WithInt32())
	if err != nil {
		t.Fatal(err)
	}
	for want := int64(5); want < 20; want += 10 {
		if v, err := n.Add(t.Context(), 5); err != nil || v != want {
			t.Errorf("docent counts to %d, %v; want %d", v, err, want)
		}
		if got := python.must(t, "count", path, "5"); got[0] != strconv.FormatInt(want+5, 10) {
			t.Errorf("kazoo counts to %s, want %d", got[0], want+5)
		}
	}
}

// TestBarriersOfThreeLibraries: each sets a barrier, and the others wait for its removal.
func TestBarriersOfThreeLibraries(t *testing.T) {
	t.Parallel()
	java, python, path := newActor(t, curator), newActor(t, kazoo), pathOf(t)
	b, err := barrier.New(newClient(t), path)
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]func(){
		"Curator": func() { java.must(t, "bar", path) }, "kazoo": func() { python.must(t, "bar", path) },
		"docent": func() {
			if err := b.Set(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, bar := range set {
		bar()
		done := make(chan error, 1)
		go func() { done <- b.Wait(t.Context()) }()
		for _, a := range []*actor{java, python} {
			if _, passed, err := a.do("pass", path, "100").wait(); err != nil || passed {
				t.Errorf("%s passes the barrier of %s: %v", a.library, name, err)
			}
		}
		if len(done) > 0 {
			t.Errorf("docent passes the barrier of %s: %v", name, <-done)
		}
		if err := b.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, a := range []*actor{java, python} {
			if _, passed, err := a.do("pass", path, "30000").wait(); err != nil || !passed {
				t.Errorf("%s does not pass after the barrier of %s: %v", a.library, name, err)
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
	d, err := barrier.NewDouble(c, path, 3)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		theirs := []*call{java.do("enter", path, "3", "30000"), python.do("enter", path, "3", "30000")}
		l, err := d.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range theirs {
			if _, ok, err := c.wait(); err != nil || !ok {
				t.Fatalf("enter: %v, %v", ok, err)
			}
		}
		theirs = []*call{java.do("leave", path, "3", "30000"), python.do("leave", path, "3", "30000")}
		if err := d.Leave(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		for _, c := range theirs {
			if _, ok, err := c.wait(); err != nil || !ok {
				t.Fatalf("leave: %v, %v", ok, err)
			}
		}
		if n := len(ephemerals(t, c, path)); n > 0 {
			t.Errorf("%d members are left after all have left", n)
		}
	}
}
