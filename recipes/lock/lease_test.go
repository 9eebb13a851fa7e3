package lock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
)

func TestParticipants(t *testing.T) {
	t.Parallel()
	const path = "/participants"
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		c := env.Client(t)
		holder := newMutex(t, c, path, recipes.WithData([]byte("first")))
		if found, err := holder.Participants(t.Context()); err != nil || len(found) != 0 {
			t.Errorf("participants of a lock that was never used: %v, %v; want none", found, err)
		}
		owned := lock.ContextWithOwner(t.Context(), lock.NewOwner("request 17"))
		before := time.Now().Add(-time.Second)
		lease, err := holder.Lock(owned)
		if err != nil {
			t.Fatal(err)
		}
		waiting := env.Client(t)
		bare := newMutex(t, waiting, path, recipes.WithoutMetadata())
		ctx, cancel := context.WithCancel(t.Context())
		done := lockLater(ctx, bare)
		awaitContenders(t, c, path, 2)
		found, err := holder.Participants(t.Context())
		if err != nil || len(found) != 2 {
			t.Fatalf("participants %v, %v; want two", found, err)
		}
		h, next := found[0], found[1]
		if !h.Holder || next.Holder || h.Path != lease.Node() || h.Sequence >= next.Sequence {
			t.Errorf("participants %+v: want the holder first", found)
		}
		if h.Session != c.Session().ID || next.Session != waiting.Session().ID || h.Kind != "lock-" {
			t.Errorf("sessions %#x and %#x, kind %q; want %#x and %#x, lock-", h.Session, next.Session, h.Kind, c.Session().ID, waiting.Session().ID)
		}
		if m := h.Metadata; m == nil || m.Owner != "request 17" || m.PID == 0 || m.Since.Before(before) || string(h.Data) != "first" {
			t.Errorf("holder's metadata %+v, data %q; want owner, process, time and first", m, h.Data)
		}
		if next.Metadata != nil || strings.Contains(string(next.Data), "{") {
			t.Errorf("waiter's metadata %+v, data %q; want Curator's bytes", next.Metadata, next.Data)
		}
		cancel()
		must.Receive(t, done, "the waiter")
		mustRelease(t, lease)
	})
}
