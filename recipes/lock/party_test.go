package lock_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/semaphore"
)

// partyOf locks and returns the metadata of the lease's znode.
func partyOf(
	ctx context.Context, t testing.TB, c *framework.Client, acquire func(context.Context) (*lease.Lease, error),
) lease.Metadata {
	t.Helper()
	l, err := acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer mustRelease(t, l)
	data, _, err := c.Get(ctx, l.Node())
	if err != nil {
		t.Fatal(err)
	}
	m, ok := lease.DecodeMetadata(data)
	if !ok {
		t.Fatalf("no metadata: %q", data)
	}
	return *m
}

// kindsWithMetadata returns each way to acquire a lease of one znode.
func kindsWithMetadata(t testing.TB, c *framework.Client) map[string]func(context.Context) (*lease.Lease, error) {
	t.Helper()
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	rw, err := lock.NewRWMutex(c, "/party/rw")
	fatal(err)
	unfair, err := lock.NewUnfairMutex(c, "/party/unfair")
	fatal(err)
	single, err := lock.NewSemaphoreMutex(c, "/party/single")
	fatal(err)
	permits, err := semaphore.New(c, "/party/permits", 3)
	fatal(err)
	election, err := leader.New(c, "/party/election", leader.WithMetadata())
	fatal(err)
	return map[string]func(context.Context) (*lease.Lease, error){
		"Mutex": newMutex(t, c, "/party/mutex").Lock, "Read": rw.Read().Lock, "Write": rw.Write().Lock,
		"UnfairMutex": unfair.Lock, "SemaphoreMutex": single.Lock, "Election": election.Campaign,
		"Semaphore": func(ctx context.Context) (*lease.Lease, error) { return permits.Acquire(ctx, 1) },
	}
}

// TestParty shows that the znodes of one owner have one party in all sessions, and those of others
// have another.
func TestParty(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := virtualServer(t)
		first, second := virtualClient(t, server), virtualClient(t, server)
		owner, other := lock.NewOwner("nightly"), lock.NewOwner("nightly")
		if !regexp.MustCompile("^[0-9a-f]{16}$").MatchString(owner.Party()) || owner.Party() == other.Party() {
			t.Errorf("parties %q and %q", owner.Party(), other.Party())
		}
		owned := lock.ContextWithOwner(t.Context(), owner)
		var goroutine string
		for name, acquire := range kindsWithMetadata(t, first) {
			if got := partyOf(owned, t, first, acquire).Party; got != owner.Party() {
				t.Errorf("%s: party %q, want the owner's %q", name, got, owner.Party())
			}
			here := partyOf(t.Context(), t, first, acquire).Party
			if goroutine == "" {
				goroutine = here
			}
			if here != goroutine || strings.Count(here, "-") != 1 {
				t.Errorf("%s: party of this goroutine %q, want %q", name, here, goroutine)
			}
			elsewhere := make(chan string)
			go func() { elsewhere <- partyOf(t.Context(), t, first, acquire).Party }()
			if there := <-elsewhere; there == here || there == "" {
				t.Errorf("%s: party of another goroutine %q, of this one %q", name, there, here)
			}
		}
		for name, acquire := range kindsWithMetadata(t, second) {
			if got := partyOf(owned, t, second, acquire).Party; got != owner.Party() {
				t.Errorf("%s in another session: party %q, want the owner's %q", name, got, owner.Party())
			}
			if got := partyOf(t.Context(), t, second, acquire).Party; got == goroutine {
				t.Errorf("%s: a goroutine has one party with two clients", name)
			}
		}
	})
}

func TestNewOwnerOfParty(t *testing.T) {
	t.Parallel()
	parent := lock.NewOwner("parent")
	child, err := lock.NewOwnerOfParty(parent.Party(), "child")
	if err != nil {
		t.Fatal(err)
	}
	if child == parent || child.Party() != parent.Party() || child.String() != "child" {
		t.Errorf("%v of party %q, parent's %q", child, child.Party(), parent.Party())
	}
	for _, party := range []string{"", strings.Repeat("x", 65)} {
		if _, err := lock.NewOwnerOfParty(party, "child"); err == nil {
			t.Errorf("a party of %d bytes is accepted", len(party))
		}
	}
	if got := (lock.Owner{}).Party(); got != "" {
		t.Errorf("the zero Owner has party %q", got)
	}
}

// TestHandoffIsMarked: the znode of a Local shows the goroutine that made it, which may have handed
// the mutex on.
func TestHandoffIsMarked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := virtualClient(t, virtualServer(t))
		m := newMutex(t, c, "/party/local")
		local, err := lock.NewLocal(m, 3)
		if err != nil {
			t.Fatal(err)
		}
		if got := partyOf(t.Context(), t, c, local.Lock); !got.Handoff {
			t.Errorf("not marked: %+v", got)
		}
		if got := partyOf(t.Context(), t, c, m.Lock); got.Handoff {
			t.Errorf("the mutex itself is marked: %+v", got)
		}
	})
}

// TestReadersOfTheFirstMetadata: a reader that knows the fields of the first version alone reads the
// present ones, and the other way round.
func TestReadersOfTheFirstMetadata(t *testing.T) {
	t.Parallel()
	type first struct {
		Version int       `json:"docent"`
		Owner   string    `json:"owner,omitempty"`
		Host    string    `json:"host,omitempty"`
		PID     int       `json:"pid,omitempty"`
		Since   time.Time `json:"since"`
	}
	since := time.UnixMilli(1).UTC()
	now := lease.Metadata{Version: 1, Owner: "o", Host: "h", PID: 7, Since: since, Party: "p", Handoff: true}
	var read first
	if err := json.Unmarshal(now.Encode(), &read); err != nil || read != (first{1, "o", "h", 7, since}) {
		t.Errorf("read %+v, %v", read, err)
	}
	old, err := json.Marshal(read)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := lease.DecodeMetadata(old)
	if !ok || got.Party != "" || got.Handoff || got.PID != 7 {
		t.Errorf("read %+v, %v", got, ok)
	}
}
