package lock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/hold"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// listsParticipants reports whether the contenders of the kind can be listed.
func listsParticipants(k kind) bool { return k.name != "local" && k.name != "multi" }

// TestParticipants of a lock that was never used, that is held, and that another client waits for whose znode
// has no metadata. The lock has a copy of its data.
func TestParticipants(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kindsThat(listsParticipants), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		c, other := env.Client(t), env.Client(t)
		data := []byte("first")
		l := k.rivalOf(t, c, path, recipes.WithData(data))
		copy(data, "later")
		if found := participantsOf(t, l); len(found) != 0 {
			t.Errorf("participants of a lock that was never used: %v; want none", found)
		}
		before := time.Now().Add(-time.Second)
		lease := mustLockAs(asOwner(t, "request 17"), t, l)
		h := participantsOf(t, l)[0]
		if !h.Holder || h.Path != lease.Node() || h.Session != c.Session().ID || string(h.Data) != "first" {
			t.Errorf("holder %+v: want it at %s, of session %#x, with the data first", h, lease.Node(), c.Session().ID)
		}
		if m := h.Metadata; m == nil || m.Owner != "request 17" || m.PID == 0 || m.Since.Before(before) {
			t.Errorf("metadata %+v, want owner, process and time", m)
		}
		bare := lockLater(t.Context(), k.lock(t, other, path, recipes.WithoutMetadata()))
		if withParticipants(k) {
			awaitContenders(t, c, path, 2)
			next := participantsOf(t, k.lock(t, c, path))
			if last := next[len(next)-1]; last.Holder || last.Session != other.Session().ID || last.Sequence <= h.Sequence {
				t.Errorf("waiter %+v, want it behind the holder, of session %#x", last, other.Session().ID)
			}
		}
		mustRelease(t, lease)
		lease = granted(t, bare, "the lock without metadata")
		if data, _, err := c.Get(t.Context(), lease.Node()); err != nil || strings.Contains(string(data), "{") {
			t.Errorf("data %q (%v), want Curator's", data, err)
		}
		mustRelease(t, lease)
	}, oneOfEach())
}

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
	c := virtualClient(t, virtualServer(t))
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
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path := anyPath("/churn")
		rw, observer := newReadWrite(t, env.Client(t), path), newReadWrite(t, env.Client(t), path)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for n := range 4 {
			side := rw.Read()
			if n == 0 {
				side = rw.Write()
			}
			wg.Go(func() {
				for ctx.Err() == nil {
					mustDo(t, t.Context(), side)
				}
			})
		}
		for range 100 {
			_, err := observer.Participants(t.Context())
			wantErr(t, "Participants", err, nil)
		}
		cancel()
		wg.Wait()
	}, oneOfEach())
}

// TestQueuePosition has a contender of each kind wait behind a holder and a waiter of another client.
func TestQueuePosition(t *testing.T) {
	t.Parallel()
	calls := func(k kind) bool { return k.callbacks }
	eachKindInVirtualTime(t, with(kindsThat(calls), permits), func(t *testing.T, k kind, srv *zkserver.Server) {
		const path = "/position"
		var positions []int
		expect := func(want ...int) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(positions, want) {
				t.Errorf("told %v, want %v", positions, want)
			}
			positions = nil
		}
		atGrant := []int{0}
		if k.name == "multi" {
			atGrant = []int{0, 0, 0} // each member's function is called
		}
		other := virtualClient(t, srv)
		l := k.lock(t, virtualClient(t, srv), path, recipes.WithQueuePosition(func(ahead int) { positions = append(positions, ahead) }))
		first := mustLock(t, k.rivalOf(t, other, path))
		second := lockLater(asOwner(t, "second"), k.rivalOf(t, other, path))
		await(time.Second)
		mustRefuse(t, l)
		expect() // nothing of a try
		third := lockLater(t.Context(), l)
		await(time.Second)
		expect(2)
		mustRelease(t, first)
		lease := granted(t, second, "the second")
		await(time.Second)
		expect(1)
		mustRelease(t, lease)
		mustRelease(t, granted(t, third, "the third"))
		expect(atGrant...)
		mustRelease(t, mustLock(t, l))
		expect(atGrant...)
	})
}

// TestAZnodeHoldsItsMetadataAsJSON: each attempt writes the metadata again, whatever the data are.
func TestAZnodeHoldsItsMetadataAsJSON(t *testing.T) {
	t.Parallel()
	host, _ := os.Hostname()
	for name, data := range map[string]string{
		"no data": "", "some": "some", "data that look like it": `{"since":"0001-01-01T00:00:00Z"}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := virtualClient(t, virtualServer(t))
				m := newMutex(t, c, "/metadata", recipes.WithData([]byte(data)))
				for _, pause := range []time.Duration{0, 7 * time.Millisecond, 1500 * time.Microsecond, time.Hour} {
					await(pause)
					began := time.Now().UTC().Truncate(time.Millisecond)
					held := mustLock(t, m)
					got, _, err := c.Get(t.Context(), held.Node())
					if err != nil {
						t.Fatal(err)
					}
					read, _ := lease.DecodeMetadata(got)
					want, err := json.Marshal(metadata{
						Version: 1, Host: host, PID: os.Getpid(), Since: began, Data: []byte(data), Party: read.Party,
						Process: hold.Process(),
					})
					if err != nil || string(got) != string(want) {
						t.Errorf("after %v the znode holds\n%s, want\n%s", pause, got, want)
					}
					mustRelease(t, held)
				}
			})
		})
	}
}

// partyOf locks and returns the metadata of the lease's znode.
func partyOf(
	ctx context.Context, t testing.TB, c *framework.Client, acquire func(context.Context) (*lease.Lease, error),
) lease.Metadata {
	t.Helper()
	l := must.Get(acquire(ctx))(t)
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

// eachParty calls check with each way of c to acquire a lease of one znode.
func eachParty(t testing.TB, c *framework.Client, check func(name string, acquire func(context.Context) (*lease.Lease, error))) {
	t.Helper()
	for _, s := range sharers() {
		if s.foreign == "" && s.name != "Multi" {
			check(s.name, s.lock(t, c, "/party/"+s.name).Lock)
		}
	}
}

// TestParty shows that the znodes of one owner have one party in all sessions, and those of others
// have another.
func TestParty(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, server *zkserver.Server) {
		first, second := virtualClient(t, server), virtualClient(t, server)
		owner, other := lock.NewOwner("nightly"), lock.NewOwner("nightly")
		if !regexp.MustCompile("^[0-9a-f]{16}$").MatchString(owner.Party()) || owner.Party() == other.Party() {
			t.Errorf("parties %q and %q", owner.Party(), other.Party())
		}
		owned := lock.ContextWithOwner(t.Context(), owner)
		var goroutine string
		eachParty(t, first, func(name string, acquire func(context.Context) (*lease.Lease, error)) {
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
		})
		eachParty(t, second, func(name string, acquire func(context.Context) (*lease.Lease, error)) {
			if got := partyOf(owned, t, second, acquire).Party; got != owner.Party() {
				t.Errorf("%s in another session: party %q, want the owner's %q", name, got, owner.Party())
			}
			if got := partyOf(t.Context(), t, second, acquire).Party; got == goroutine {
				t.Errorf("%s: a goroutine has one party with two clients", name)
			}
		})
	})
}

func TestNewOwnerOfParty(t *testing.T) {
	t.Parallel()
	parent := lock.NewOwner("parent")
	child := must.Get(lock.NewOwnerOfParty(parent.Party(), "child"))(t)
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
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		m := newMutex(t, c, "/party/local")
		local := must.Get(lock.NewLocal(m, 3))(t)
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
	old := must.Get(json.Marshal(read))(t)
	got, ok := lease.DecodeMetadata(old)
	if !ok || got.Party != "" || got.Handoff || got.PID != 7 {
		t.Errorf("read %+v, %v", got, ok)
	}
}

// FuzzNodeData reads arbitrary data of a contender's znode.
func FuzzNodeData(f *testing.F) {
	f.Add([]byte(`{"docent":1,"owner":"o","host":"h","pid":7,"since":"2026-01-02T03:04:05Z","data":"AAE="}`), int32(0))
	f.Add([]byte("10.0.0.1"), int32(0))
	f.Add([]byte("__REVOKE__"), int32(1))
	f.Add([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}, int32(1))
	f.Add([]byte(`{"docent":0}`), int32(2))
	f.Fuzz(func(t *testing.T, data []byte, version int32) {
		given := slices.Clone(data)
		m, ok := lease.DecodeMetadata(data)
		if ok != (m != nil) || ok && m.Version < 1 {
			t.Errorf("%q: %+v, %v", data, m, ok)
		}
		if ok {
			encoded, err := json.Marshal(m)
			if err != nil {
				return // a year that can be read and not written
			}
			again, ok := lease.DecodeMetadata(encoded)
			if !ok || again.Owner != m.Owner || again.PID != m.PID || !again.Since.Equal(m.Since) || !bytes.Equal(again.Data, m.Data) {
				t.Errorf("%q is read as %+v, written and read again %+v", data, m, again)
			}
		}
		if queuenode.RequestsRelease(data, 0) {
			t.Errorf("%q, put there by the contender itself, is taken for a request", data)
		}
		if plain := string(data) == "__REVOKE__"; plain && version != 0 && !queuenode.RequestsRelease(data, version) {
			t.Error("a request is not seen")
		}
		if !bytes.Equal(data, given) {
			t.Error("the data was changed")
		}
	})
}
