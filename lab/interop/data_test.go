package interop_test

import (
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
)

// Each library lists the contenders of both, and both lists agree.
func TestCuratorParticipants(t *testing.T) {
	t.Parallel()
	each(t, queued, func(t *testing.T, k kind, path string) {
		ours, theirs := k.native(t, path, recipes.WithData([]byte("ours"))), k.foreigner(t, curator, path)
		plain, last := k.native(t, path, recipes.WithoutMetadata()), k.foreigner(t, curator, path)
		mustLock(t, ours)
		contenders := []contender{ours, theirs, plain, last}
		queue := queueUp(t, ours.client, path, contenders[1:]...)

		observer := newActor(t, curator)
		participants := ours.participants(t)
		var paths []string
		var sessions []int64
		for i, p := range participants {
			paths, sessions = append(paths, p.Path), append(sessions, p.Session)
			if holds := i == 0 || k.shared; p.Holder != holds {
				t.Errorf("participant %d: holder %v, want %v", i, p.Holder, holds)
			}
		}
		want := []int64{ours.sessionID(), theirs.session, plain.sessionID(), last.session}
		if !slices.Equal(sessions, want) {
			t.Fatalf("docent sees the sessions %x, want %x", sessions, want)
		}
		if seen := observer.must(t, "participants", k.foreign, path); !slices.Equal(seen, paths) {
			t.Errorf("Curator sees\n%q, docent\n%q", seen, paths)
		}
		checkData(t, participants[0], participants[1], participants[2])
		for i, granted := range queue {
			mustUnlock(t, contenders[i])
			mustGet(t, granted, "the next one's lock")
		}
	})
}

// protectedName is the form of the names of Curator's contenders.
var protectedName = regexp.MustCompile(`/_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-(lock-|__WRIT__|__READ__)[0-9]{10}$`)

// checkData looks at what the znodes of docent's contenders and of Curator's hold.
func checkData(t testing.TB, ours, theirs, plain lock.Participant) {
	t.Helper()
	if ours.Metadata == nil || string(ours.Data) != "ours" {
		t.Errorf("docent's participant: metadata %v, data %q; want metadata, and the data of WithData", ours.Metadata, ours.Data)
	}
	if theirs.Metadata != nil || net.ParseIP(string(theirs.Data)) == nil {
		t.Errorf("Curator's participant: metadata %v, data %q; want none, and an IP address", theirs.Metadata, theirs.Data)
	}
	if plain.Metadata != nil || string(plain.Data) != string(theirs.Data) {
		t.Errorf("docent's without metadata: %v, data %q; want none, and Curator's %q byte for byte", plain.Metadata, plain.Data, theirs.Data)
	}
	for _, p := range []lock.Participant{ours, theirs, plain} {
		if !protectedName.MatchString(p.Path) {
			t.Errorf("znode %s, want Curator's form of a name", p.Path)
		}
	}
}

// docent and Curator read what the other has compressed.
func TestCuratorGzip(t *testing.T) {
	t.Parallel()
	path := pathOf(t)
	const text = "compressed by one, read by the other"
	c := newClient(t, framework.WithCompression())
	a := newActor(t, curator)
	for _, text := range []string{text, "", strings.Repeat("long ", 10000)} {
		ours := must.Get(c.Create(t.Context(), path+"/ours-", []byte(text), framework.WithParents(), framework.Sequential()))(t)
		if got := a.must(t, "data-gzip", ours); decoded(t, got[0]) != text {
			t.Errorf("Curator reads %q, want what docent wrote", got)
		}
		theirs := strings.Replace(ours, "ours", "theirs", 1)
		a.must(t, "create-gzip", theirs, encoded(text))
		if got, _, err := c.Get(t.Context(), theirs); err != nil || string(got) != text {
			t.Errorf("docent reads %q (%v), want what Curator wrote", got, err)
		}
	}
}

// A waiter needs none of the data, so docent's waiter can wait behind data that is not compressed.
func TestCuratorSharesALockWithCompression(t *testing.T) {
	t.Parallel()
	compressing := func(t testing.TB, path string) *native {
		t.Helper()
		return mutexes.nativeOf(t, newClient(t, framework.WithCompression()), path)
	}
	sub(t, "Both compress", func(t *testing.T, path string) {
		theirs := func() contender { return renamed(mutexes, "mutex-gzip").foreigner(t, curator, path) }
		refusal(t, path, compressing(t, path), theirs())
		refusal(t, path, theirs(), compressing(t, path))
		inOrder(t, path, theirs(), compressing(t, path), theirs(), compressing(t, path), compressing(t, path))
	})
	sub(t, "Only docent compresses", func(t *testing.T, path string) {
		ours, theirs := compressing(t, path), mutexes.foreigner(t, curator, path)
		refusal(t, path, ours, theirs)
		refusal(t, path, theirs, ours)
	})
	sub(t, "Only Curator compresses", func(t *testing.T, path string) {
		ours, theirs := mutexes.native(t, path), renamed(mutexes, "mutex-gzip").foreigner(t, curator, path)
		refusal(t, path, ours, theirs)
		refusal(t, path, theirs, ours)
	})
}
