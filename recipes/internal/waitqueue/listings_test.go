//go:build !docent_plain

package waitqueue //nolint:testpackage // what it tests has no exported name, and no caller could wait at these moments

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/internal/queuenode"
)

// An ensembleOfOne answers the listings that are asked for, one after another, when it is told to.
type ensembleOfOne struct {
	asked   int
	answers chan answer
	ended   int // requests whose context ended first
}

type answer struct {
	nodes []queuenode.Node
	err   error
}

func (e *ensembleOfOne) ask(ctx context.Context) (view, error) {
	e.asked++
	select {
	case a := <-e.answers:
		return view{nodes: a.nodes}, a.err
	case <-ctx.Done():
		e.ended++
		return view{}, ctx.Err()
	}
}

// answer answers the oldest listing, once all that can happen before has happened.
func (e *ensembleOfOne) answer(nodes []queuenode.Node, err error) {
	synctest.Wait()
	e.answers <- answer{nodes, err}
}

// A sharer is an attempt that waits for a listing that contains its node.
type sharer struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
	nodes  []queuenode.Node
	err    error
}

var sharedKey = listingKey{session: 1, dir: "/lock", kind: "lock-"}

func (e *ensembleOfOne) sharer(t *testing.T, ls *listings, name string) *sharer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &sharer{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer cancel()
		v, err := ls.list(ctx, sharedKey, e.ask, func(v view) bool { return queuenode.Index(v.nodes, name) >= 0 })
		s.nodes, s.err = v.nodes, err
	}()
	synctest.Wait()
	return s
}

// inListings runs the body as a subtest, in virtual time. At the end no attempt may wait.
func inListings(t *testing.T, name string, body func(t *testing.T, e *ensembleOfOne, ls *listings)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			e, ls := &ensembleOfOne{answers: make(chan answer)}, &listings{all: make(map[listingKey]*underway)}
			body(t, e, ls)
			synctest.Wait()
			if len(ls.all) != 0 {
				t.Errorf("kept although no attempt waits: %v", ls.all)
			}
		})
	})
}

func named(names ...string) []queuenode.Node {
	nodes := make([]queuenode.Node, len(names))
	for i, name := range names {
		nodes[i].Name = name
	}
	return nodes
}

func (s *sharer) mustHave(t *testing.T, name string) {
	t.Helper()
	<-s.done
	if s.err != nil || queuenode.Index(s.nodes, name) < 0 {
		t.Errorf("%s: %v, %v, want a listing with %s", s.name, s.nodes, s.err, name)
	}
}

func TestListings(t *testing.T) {
	t.Parallel()
	inListings(t, "those who wait share the next one", func(t *testing.T, e *ensembleOfOne, ls *listings) {
		first := e.sharer(t, ls, "a")
		later := []*sharer{e.sharer(t, ls, "b"), e.sharer(t, ls, "c"), e.sharer(t, ls, "d")}
		e.answer(named("a"), nil) // sent before the others' creations
		e.answer(named("a", "b", "c", "d"), nil)
		first.mustHave(t, "a")
		for _, s := range later {
			s.mustHave(t, s.name)
		}
		if e.asked != 2 {
			t.Errorf("%d listings, want 2", e.asked)
		}
	})
	inListings(t, "the one on its way will do where it has the node", func(t *testing.T, e *ensembleOfOne, ls *listings) {
		first, second := e.sharer(t, ls, "a"), e.sharer(t, ls, "b")
		e.answer(named("a", "b"), nil)
		first.mustHave(t, "a")
		second.mustHave(t, "b")
		if e.asked != 1 {
			t.Errorf("%d listings, want 1", e.asked)
		}
	})
	inListings(t, "a node that the next one has not is gone", func(t *testing.T, e *ensembleOfOne, ls *listings) {
		first, gone := e.sharer(t, ls, "a"), e.sharer(t, ls, "b")
		e.answer(named("a"), nil)
		e.answer(named("a"), nil)
		first.mustHave(t, "a")
		gone.mustHave(t, "a")
	})
	inListings(t, "the sender's ctx ends, and the others' listing goes on", func(t *testing.T, e *ensembleOfOne, ls *listings) {
		first, second := e.sharer(t, ls, "a"), e.sharer(t, ls, "b")
		first.cancel()
		<-first.done
		if !errors.Is(first.err, context.Canceled) {
			t.Errorf("%v, want the end of ctx", first.err)
		}
		e.answer(named("a", "b"), nil)
		second.mustHave(t, "b")
		if e.asked != 1 || e.ended != 0 {
			t.Errorf("%d listings, %d of them ended, want 1 and none", e.asked, e.ended)
		}
	})
	inListings(t, "all give up, and the next one asks anew", func(t *testing.T, e *ensembleOfOne, ls *listings) {
		first, second := e.sharer(t, ls, "a"), e.sharer(t, ls, "b")
		first.cancel()
		second.cancel()
		<-first.done
		<-second.done
		if e.ended != 1 {
			t.Errorf("%d requests ended, want the one that no attempt waits for", e.ended)
		}
		third := e.sharer(t, ls, "c")
		e.answer(named("c"), nil)
		third.mustHave(t, "c")
	})
	inListings(t, "an error is that of who asked after it came", func(t *testing.T, e *ensembleOfOne, ls *listings) {
		fault := errors.New("no such luck")
		first, second := e.sharer(t, ls, "a"), e.sharer(t, ls, "b")
		e.answer(nil, fault)
		<-first.done
		if !errors.Is(first.err, fault) {
			t.Errorf("%v, want what was answered", first.err)
		}
		e.answer(named("b"), nil)
		second.mustHave(t, "b")
	})
	inListings(t, "only so many list along with their creations", func(t *testing.T, _ *ensembleOfOne, ls *listings) {
		var begun []*alongListing
		for i := range 2 * maxAlong {
			along := ls.begin(sharedKey)
			if begun = append(begun, along); (along != nil) != (i < maxAlong) {
				t.Errorf("attempt %d lists along: %v", i, along)
			}
		}
		for _, along := range begun {
			ls.end(sharedKey, along, nil)
		}
	})
	inListings(t, "no attempt lists along while others share a listing", func(t *testing.T, e *ensembleOfOne, ls *listings) {
		first := e.sharer(t, ls, "a")
		if ls.begin(sharedKey) != nil {
			t.Error("two listings at once")
		}
		e.answer(named("a"), nil)
		first.mustHave(t, "a")
	})
}
