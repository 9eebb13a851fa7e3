//go:build !docent_plain

package waitqueue //nolint:testpackage // as listings_test.go

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A looker is an attempt that looks for its node in the listings along with others' creations.
type looker struct {
	view
	err  error
	done bool
}

func lookAlong(ctx context.Context, ls *listings, q *Queue, name string) *looker {
	l := new(looker)
	go func() {
		l.view, l.err = ls.listedAlong(ctx, sharedKey, q, name, time.Second)
		l.done = true
	}()
	synctest.Wait()
	return l
}

func TestListingsAlongWithOthersCreations(t *testing.T) {
	t.Parallel()
	const own, other = "a-lock-0000000007", "b-lock-0000000005"
	queue := &Queue{Kinds: []string{"lock-"}}
	inListings(t, "one with the node ends the wait", func(t *testing.T, _ *ensembleOfOne, ls *listings) {
		first := ls.begin(sharedKey)
		second := ls.begin(sharedKey)
		l := lookAlong(t.Context(), ls, queue, own)
		ls.end(sharedKey, first, []string{other}) // sent before the creation
		if synctest.Wait(); l.done {
			t.Fatalf("%v, %v from a listing without the node", l.nodes, l.err)
		}
		ls.end(sharedKey, second, []string{own, other})
		if synctest.Wait(); l.err != nil || len(l.nodes) != 2 || l.nodes[0].Name != other {
			t.Errorf("%v, %v, want both contenders in order", l.nodes, l.err)
		}
	})
	inListings(t, "one that has ended counts while others are on their way", func(t *testing.T, _ *ensembleOfOne, ls *listings) {
		first := ls.begin(sharedKey)
		second := ls.begin(sharedKey)
		ls.end(sharedKey, first, []string{own})
		if l := lookAlong(t.Context(), ls, queue, own); l.err != nil || len(l.nodes) != 1 {
			t.Errorf("%v, %v, want the node", l.nodes, l.err)
		}
		ls.end(sharedKey, second, nil)
	})
	inListings(t, "a creation that fails has none", func(t *testing.T, _ *ensembleOfOne, ls *listings) {
		along := ls.begin(sharedKey)
		l := lookAlong(t.Context(), ls, queue, own)
		ls.end(sharedKey, along, nil)
		if synctest.Wait(); !l.done || l.nodes != nil || l.err != nil {
			t.Errorf("%v, %v, %v, want none", l.done, l.nodes, l.err)
		}
	})
	inListings(t, "a creation that is held up is not waited for", func(t *testing.T, _ *ensembleOfOne, ls *listings) {
		along := ls.begin(sharedKey)
		l := lookAlong(t.Context(), ls, queue, own)
		<-time.After(2 * time.Second)
		if synctest.Wait(); !l.done || l.nodes != nil || l.err != nil {
			t.Errorf("%v, %v, %v, want none", l.done, l.nodes, l.err)
		}
		ls.end(sharedKey, along, nil)
	})
	inListings(t, "ctx ends the wait", func(t *testing.T, _ *ensembleOfOne, ls *listings) {
		along := ls.begin(sharedKey)
		ctx, cancel := context.WithCancel(t.Context())
		l := lookAlong(ctx, ls, queue, own)
		cancel()
		if synctest.Wait(); !errors.Is(l.err, context.Canceled) {
			t.Errorf("%v, %v, want the end of ctx", l.nodes, l.err)
		}
		ls.end(sharedKey, along, nil)
	})
	inListings(t, "the order needs requests", func(t *testing.T, _ *ensembleOfOne, ls *listings) {
		along := ls.begin(sharedKey)
		l := lookAlong(t.Context(), ls, queue, own)
		ls.end(sharedKey, along, []string{own, "c-lock-2147483647", "d-lock-2147483647"})
		if synctest.Wait(); !l.done || l.nodes != nil || l.err != nil {
			t.Errorf("%v, %v, %v, want none", l.done, l.nodes, l.err)
		}
	})
	inListings(t, "contenders of another kind are shown", func(t *testing.T, _ *ensembleOfOne, ls *listings) {
		along := ls.begin(sharedKey)
		l := lookAlong(t.Context(), ls, queue, own)
		ls.end(sharedKey, along, []string{own, "c-latch-0000000001", "leases"})
		if synctest.Wait(); len(l.nodes) != 1 || len(l.others) != 1 || !l.leases || l.err != nil {
			t.Errorf("%+v, %v, want the node, the latch and the leases", l.view, l.err)
		}
	})
}
