package interop_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zktest"
)

// nodeOf returns the path of the contender's one znode below path.
func nodeOf(t testing.TB, path string, c contender) string {
	t.Helper()
	for node, session := range ephemerals(t, newClient(t), path) {
		if session == c.sessionID() {
			return node
		}
	}
	t.Fatalf("session %#x has no znode below %s", c.sessionID(), path)
	panic("unreachable")
}

// Curator's Revoker makes a request; docent's holder receives it and releases.
func TestCuratorRevokesDocent(t *testing.T) {
	t.Parallel()
	each(t, queued, func(t *testing.T, k kind, path string) {
		notified := make(chan *lock.Lease, 1)
		holder := k.native(t, path, recipes.WithRevocation(func(l *lock.Lease) { notified <- l }))
		mustLock(t, holder)
		other := writers.foreigner(t, curator, path)
		if k.foreign == mutexes.foreign {
			other = mutexes.foreigner(t, curator, path)
		}
		granted := lockLater(t, other)
		newActor(t, curator).must(t, "revoke", nodeOf(t, path, holder))
		select {
		case l := <-notified:
			if l != holder.lease {
				t.Error("the function got another lease than the holder's")
			}
		case <-time.After(generous):
			t.Fatal("docent's holder did not hear of Curator's request")
		}
		mustUnlock(t, holder)
		mustGet(t, granted, "Curator's lock after the revocation")
	})
}

// A Curator process that compresses also compresses its request. This one's
// does it by hand: Curator 5.4 can compress single operations only.
func TestCuratorRevokesDocentInGzip(t *testing.T) {
	t.Parallel()
	path := pathOf(t)
	notified := make(chan *lock.Lease, 1)
	holder := mutexes.native(t, path, recipes.WithRevocation(func(l *lock.Lease) { notified <- l }))
	mustLock(t, holder)
	newActor(t, curator).must(t, "set-gzip", nodeOf(t, path, holder), encoded("__REVOKE__"))
	select {
	case <-notified:
	case <-time.After(generous):
		t.Fatal("docent's holder did not hear of the compressed request")
	}
	mustUnlock(t, holder)
}

// docent asks, Curator's listener hears it.
func TestDocentRevokesCurator(t *testing.T) {
	t.Parallel()
	each(t, queued, func(t *testing.T, k kind, path string) {
		holder := k.foreigner(t, curator, path)
		holder.must(t, "revocable", k.foreign, path)
		mustLock(t, holder)
		ours := writers.native(t, path)
		if k.foreign == mutexes.foreign {
			ours = mutexes.native(t, path)
		}
		granted := lockLater(t, ours)
		awaitQueued(t, ours.client, path, ours)

		participants := k.nativeOf(t, ours.client, path).participants(t)
		if !participants[0].Holder || participants[0].Session != holder.session {
			t.Fatalf("docent sees %+v first, want Curator's holder", participants[0])
		}
		must.OK(t, lock.Revoke(t.Context(), ours.client, participants[0].Path))
		zktest.Eventually(t, generous, "Curator's listener has heard of docent's request", func() bool {
			return holder.count("revoked "+holder.name+" "+path) == 1
		})
		mustWait(t, granted, "docent's lock, while Curator has not let go")
		mustUnlock(t, holder)
		mustGet(t, granted, "docent's lock after the revocation")
	})
}

// encoded returns data as drivers have it.
func encoded(text string) string { return "=" + base64.StdEncoding.EncodeToString([]byte(text)) }

func decoded(t testing.TB, word string) string {
	t.Helper()
	text := must.Get(base64.StdEncoding.DecodeString(strings.TrimPrefix(word, "=")))(t)
	return string(text)
}
