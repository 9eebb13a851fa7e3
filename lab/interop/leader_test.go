package interop_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lock"
)

// A candidate is an election as a lock: the leader has the lock.
type candidate struct{ *leader.Election }

func (c candidate) Lock(ctx context.Context) (*lock.Lease, error) { return c.Campaign(ctx) }

func (c candidate) TryLock(context.Context) (*lock.Lease, error) {
	return nil, errors.New("an election has no TryLock")
}

// election returns the maker of candidates of the format.
func election(f leader.Format) maker {
	return func(t testing.TB, c *framework.Client, path string, _ ...lock.Option) lock.Locker {
		t.Helper()
		return newCandidate(t, c, path, f, "docent")
	}
}

func newCandidate(t testing.TB, c *framework.Client, path string, f leader.Format, id string) candidate {
	t.Helper()
	return candidate{must.Get(leader.New(c, path, leader.WithFormat(f), leader.WithID(id)))(t)}
}

// Curator's twins of the formats of an election.
var (
	latches   = kind{name: "Latch", foreign: "latch", make: election(leader.Latch)}
	selectors = kind{name: "Selector", foreign: "selector", make: election(leader.Selector)}
)

// Java takes all that our znode holds for the id, and we show Java's.
func TestCuratorSeesOurID(t *testing.T) {
	t.Parallel()
	for f, k := range map[leader.Format]kind{leader.Latch: latches, leader.Selector: selectors} {
		sub(t, k.name, func(t *testing.T, path string) {
			c := newClient(t)
			ours := newNative(t, newCandidate(t, c, path, f, "anna:8080"))
			ours.client, ours.fences = c, path
			theirs := k.foreigner(t, curator, path)
			mustLock(t, ours)
			queue := queueUp(t, newClient(t), path, theirs)
			want := []string{"anna:8080", theirs.name}
			if got := newActor(t, curator).must(t, "ids", k.foreign, path); !slices.Equal(got, want) {
				t.Errorf("Curator sees %q, want %q", got, want)
			}
			var got []string
			for _, p := range ours.participants(t) {
				got = append(got, string(p.Data))
			}
			if !slices.Equal(got, want) {
				t.Errorf("docent sees %q, want %q", got, want)
			}
			mustUnlock(t, ours)
			mustGet(t, queue[0], "Curator's term")
			mustUnlock(t, theirs)
		})
	}
}

// A latch and a selector on one path both lead. docent refuses to be one of the two.
func TestMixedFormatsAreRefused(t *testing.T) {
	t.Parallel()
	for f, theirs := range map[leader.Format]kind{leader.Latch: selectors, leader.Selector: latches} {
		sub(t, f.String(), func(t *testing.T, path string) {
			holder := theirs.foreigner(t, curator, path)
			mustLock(t, holder)
			c := newClient(t)
			if _, err := newCandidate(t, c, path, f, "docent").Campaign(t.Context()); !errors.Is(err, leader.ErrMixed) {
				t.Errorf("Campaign beside Curator's %s: %v, want ErrMixed", theirs.name, err)
			}
			mustUnlock(t, holder)
			awaitFree(t, c, path)
		})
	}
}

// Curator shows what a candidate without an id holds as its id: its metadata, or nothing. Its getLeader and
// getParticipants throw NullPointerException if that is null.
func TestCuratorShowsCandidatesWithoutAnID(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]leader.Option{"without": nil, "empty": {leader.WithID("")}} {
		path, c := pathOf(t)+"-"+name, newClient(t)
		e := must.Get(leader.New(c, path, opts...))(t)
		term := must.Get(e.Campaign(t.Context()))(t)
		data, _ := must.Get2(c.Get(t.Context(), term.Node()))(t)
		if ids := strings.Join(newActor(t, curator).must(t, "ids", "latch", path), " "); ids != string(data) {
			t.Errorf("%s: Curator shows %q, want %q", name, ids, data)
		}
		must.OK(t, term.Release(t.Context()))
	}
}
