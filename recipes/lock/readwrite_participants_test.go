package lock_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

// shown is what a test compares of a participant.
type shown struct {
	kind, owner string
	holder      bool
}

func show(found []lock.Participant) []shown {
	var all []shown
	for _, p := range found {
		s := shown{kind: p.Kind, holder: p.Holder}
		if p.Metadata != nil {
			s.owner = p.Metadata.Owner
		}
		all = append(all, s)
	}
	return all
}

func TestReadWriteParticipants(t *testing.T) {
	t.Parallel()
	const path, reads, writes = "/rwparticipants/rw", "__READ__", "__WRIT__"
	c := newClient(t, zktest.Shared(t).Addr())
	rw := newReadWrite(t, c, path, recipes.WithData([]byte("of the test")))
	check := func(what string, want ...shown) {
		t.Helper()
		found := must.Get(rw.Participants(t.Context()))(t)
		if got := show(found); !slices.Equal(got, want) {
			t.Errorf("%s: participants %v, want %v", what, got, want)
		}
		for side, kind := range map[*lock.Side]string{rw.Read(): reads, rw.Write(): writes} {
			of := slices.DeleteFunc(slices.Clone(want), func(s shown) bool { return s.kind != kind })
			if got := show(participantsOf(t, side)); !slices.Equal(got, of) {
				t.Errorf("%s: participants of side %s: %v, want %v", what, kind, got, of)
			}
		}
		for _, p := range found {
			if string(p.Data) != "of the test" || p.Session != c.Session().ID || digits(p.Path) == "" {
				t.Errorf("%s: participant %+v, want one with its data, session %#x and node", what, p, c.Session().ID)
			}
		}
	}
	check("nobody")
	one := asOwner(t, "one")
	writing := mustLockAs(one, t, rw.Write())
	reader := queueUp(asOwner(t, "two"), t, rw.Read(), c, path, 2)
	writer := queueUp(asOwner(t, "three"), t, rw.Write(), c, path, 3)
	last := queueUp(asOwner(t, "four"), t, rw.Read(), c, path, 4)
	check("a writer holds",
		shown{writes, "one", true}, shown{reads, "two", false}, shown{writes, "three", false}, shown{reads, "four", false})
	reading := mustLockAs(one, t, rw.Read())
	check("a writer reads as well",
		shown{writes, "one", true}, shown{reads, "one", true}, shown{reads, "two", false}, shown{writes, "three", false}, shown{reads, "four", false})
	mustRelease(t, writing)
	second := granted(t, reader, "the reader behind")
	check("readers share",
		shown{reads, "one", true}, shown{reads, "two", true}, shown{writes, "three", false}, shown{reads, "four", false})
	mustRelease(t, reading)
	mustRelease(t, second)
	third := granted(t, writer, "the writer behind")
	check("the next writer holds", shown{writes, "three", true}, shown{reads, "four", false})
	mustRelease(t, third)
	mustRelease(t, granted(t, last, "the last reader"))
}

// TestParticipantsWhileTheyComeAndGo: CURATOR-346, where one that vanished
// between list and read was an error.
func TestParticipantsWhileTheyComeAndGo(t *testing.T) {
	t.Parallel()
	const path = "/rwparticipants/churn"
	server := zktest.Shared(t)
	c := newClient(t, server.Addr())
	rw, observer := newReadWrite(t, c, path), newReadWrite(t, newClient(t, server.Addr()), path)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for n := range 4 {
		side := rw.Read()
		if n == 0 {
			side = rw.Write()
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := lock.Do(t.Context(), side, func(context.Context, *lock.Lease) error { return nil }); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 100 {
		if _, err := observer.Participants(t.Context()); err != nil {
			t.Error(err)
		}
	}
	cancel()
	wg.Wait()
}

func TestQueuePosition(t *testing.T) {
	t.Parallel()
	const path = "/rwparticipants/position"
	c := newClient(t, zktest.Shared(t).Addr())
	others := newReadWrite(t, c, path)
	first := mustLockAs(asOwner(t, "first"), t, others.Write())
	second := queueUp(asOwner(t, "second"), t, others.Write(), c, path, 2)
	positions := make(chan int, 16)
	rw := newReadWrite(t, c, path, recipes.WithQueuePosition(func(position int) { positions <- position }))
	done := queueUp(asOwner(t, "third"), t, rw.Read(), c, path, 3)
	expect := func(want int) {
		t.Helper()
		if got := must.Receive(t, positions, "the position in the queue"); got != want {
			t.Errorf("position %d, want %d", got, want)
		}
	}
	expect(2)
	mustRelease(t, first)
	lease := granted(t, second, "the second")
	mustRelease(t, lease)
	got := must.Receive(t, positions, "the position in the queue")
	if got == 1 { // it had seen the first go
		got = must.Receive(t, positions, "the position in the queue")
	}
	if got != 0 {
		t.Errorf("position %d, want 0", got)
	}
	mustRelease(t, granted(t, done, "the third"))
	mustRelease(t, mustLock(t, rw.Write()))
	expect(0)
	select {
	case got := <-positions:
		t.Errorf("position %d told without a change", got)
	default:
	}
}
