package history_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/history"
)

// checkLimit is far above what these histories take.
const checkLimit = time.Minute

// A story is a history that is made up, of one group.
type story struct {
	model   history.Model
	records []history.Record
	revoked [2]int64 // the session of x that another client closed, and when
}

// revoke returns the story in which another client has closed a session of x.
func (s story) revoke(session, at int64) story {
	s.revoked = [2]int64{session, at}
	return s
}

// storyOf returns a story in which every lease is of /a, unless its records say otherwise.
func storyOf(m history.Model, parts ...[]history.Record) story {
	s := story{model: m}
	for _, p := range parts {
		for _, r := range p {
			r.Model, r.Group = m.Name, "/a"
			s.records = append(s.records, r)
		}
	}
	return s
}

func (s story) assemble(t testing.TB) *history.History {
	t.Helper()
	h := must.Get(history.Assemble(s.records))(t)
	if s.revoked[1] > 0 {
		h.Revoke("x", s.revoked[0], s.revoked[1])
	}
	return h
}

// session is a grant in another session than the first.
func session(id int64, g []history.Record) []history.Record {
	g[0].Session = id
	return g
}

// grant is a grant of /a to an owner between two moments.
func grant(lease, owner string, fence, call, ret int64) []history.Record {
	return []history.Record{{
		Kind: history.Granted, Client: owner, Lease: lease, Owner: owner, Session: 1,
		Locks: []history.LockRef{{Lock: "/a", Fence: fence}}, Call: call, Return: ret,
	}}
}

// shared is grant for an owner that shares.
func shared(lease, owner string, fence, call, ret int64) []history.Record {
	g := grant(lease, owner, fence, call, ret)
	g[0].Shared = true
	return g
}

// of is a grant of several locks, all with one fence.
func of(locks, lease, owner string, fence, call, ret int64) []history.Record {
	g := grant(lease, owner, fence, call, ret)
	g[0].Locks = nil
	for l := range strings.SplitSeq(locks, ",") {
		g[0].Locks = append(g[0].Locks, history.LockRef{Lock: l, Fence: fence})
	}
	return g
}

func release(lease string, call, ret int64) []history.Record {
	return []history.Record{{Kind: history.Released, Lease: lease, Call: call, Return: ret}}
}

// lost is a loss of lease 1 that was observed at a moment; before, the lease was seen to
// stand.
func lost(alive, observed int64) []history.Record {
	return []history.Record{{Kind: history.Lost, Lease: "1", Alive: alive, Return: observed}}
}

func standing(lease string, at int64) []history.Record {
	return []history.Record{{Kind: history.Standing, Lease: lease, Alive: at}}
}

func count(owner string, n int, call, ret int64) []history.Record {
	return []history.Record{{Kind: history.Counted, Client: owner, Owner: owner, Count: n, Call: call, Return: ret}}
}

func TestModels(t *testing.T) {
	t.Parallel()
	mutex, reentrant, readWrite, multi := history.Mutex(), history.Reentrant(), history.ReadWrite(), history.Multi()
	late := storyOf(mutex, grant("1", "x", 5, 0, 10), lost(35, 36), grant("2", "y", 6, 1, 31), release("2", 40, 41))
	again := storyOf(reentrant, grant("1", "x", 5, 0, 10), grant("2", "y", 6, 1, 31), grant("3", "x", 5, 32, 33),
		count("x", 1, 34, 35), count("y", 1, 34, 35), release("3", 36, 37), lost(38, 39), release("2", 40, 41))
	for _, c := range []struct {
		name  string
		story story
		want  porcupine.CheckResult
	}{
		{"a mutex goes from hand to hand", storyOf(mutex, grant("1", "x", 5, 0, 10), grant("2", "y", 6, 1, 30),
			release("1", 20, 40), release("2", 50, 60)), porcupine.Ok},
		{"a mutex is held by two", storyOf(mutex, grant("1", "x", 5, 0, 10), grant("2", "y", 6, 1, 15),
			release("1", 20, 40), release("2", 50, 60)), porcupine.Illegal},
		{"a mutex is re-entered", storyOf(mutex, grant("1", "x", 5, 0, 10), grant("2", "x", 5, 11, 12),
			release("2", 20, 21), release("1", 30, 31)), porcupine.Illegal},
		{"a fence does not grow", storyOf(mutex, grant("1", "x", 5, 0, 10), release("1", 20, 21),
			grant("2", "y", 5, 30, 31), release("2", 40, 41)), porcupine.Illegal},
		{"a loss comes before the succession", storyOf(mutex, grant("1", "x", 5, 0, 10), lost(20, 30),
			grant("2", "y", 6, 1, 31), release("2", 40, 41)), porcupine.Ok},
		{"a loss is observed late by somebody who had not looked", storyOf(mutex, grant("1", "x", 5, 0, 10), lost(20, 90),
			grant("2", "y", 6, 1, 31), release("2", 40, 41)), porcupine.Ok},
		{"a loss comes after the succession", storyOf(mutex, grant("1", "x", 5, 0, 10), lost(35, 36),
			grant("2", "y", 6, 1, 31), release("2", 40, 41)), porcupine.Illegal},
		{"a killed holder is succeeded", storyOf(mutex, grant("1", "x", 5, 0, 10), standing("1", 20),
			grant("2", "y", 6, 1, 31)), porcupine.Ok},
		{"a killed holder is succeeded before its death", storyOf(mutex, grant("1", "x", 5, 0, 10), standing("1", 32),
			grant("2", "y", 6, 1, 31)), porcupine.Illegal},

		{"an owner re-enters and counts", storyOf(reentrant, grant("1", "x", 5, 0, 10), grant("2", "x", 5, 11, 12),
			count("x", 2, 13, 14), release("2", 20, 21), count("x", 1, 22, 23), grant("3", "y", 6, 1, 40),
			release("1", 30, 31), count("x", 0, 50, 51)), porcupine.Ok},
		{"another owner gets in before the last lease is released", storyOf(reentrant, grant("1", "x", 5, 0, 10),
			grant("2", "x", 5, 11, 12), release("2", 20, 21), grant("3", "y", 6, 1, 25), release("1", 30, 31)), porcupine.Illegal},
		{"a count is too great", storyOf(reentrant, grant("1", "x", 5, 0, 10), count("x", 2, 13, 14), release("1", 30, 31)), porcupine.Illegal},
		{"a second lease has another znode", storyOf(reentrant, grant("1", "x", 5, 0, 10), grant("2", "x", 6, 11, 12),
			release("2", 20, 21), release("1", 30, 31)), porcupine.Illegal},

		{"readers share, and the writer comes after", storyOf(readWrite, shared("1", "x", 5, 0, 10), shared("2", "y", 4, 1, 11),
			release("1", 20, 21), release("2", 22, 23), grant("3", "z", 6, 2, 24), release("3", 30, 31)), porcupine.Ok},
		{"a reader is beside a writer", storyOf(readWrite, grant("1", "x", 5, 0, 10), shared("2", "y", 6, 1, 11),
			release("1", 20, 21), release("2", 22, 23)), porcupine.Illegal},
		{"a writer is beside a reader", storyOf(readWrite, shared("1", "x", 5, 0, 10), grant("2", "y", 6, 1, 11),
			release("1", 20, 21), release("2", 22, 23)), porcupine.Illegal},
		{"a writer goes on as a reader", storyOf(readWrite, grant("1", "x", 5, 0, 10), shared("2", "x", 5, 11, 12),
			release("1", 20, 21), shared("3", "y", 6, 1, 22), release("2", 30, 31), release("3", 30, 31)), porcupine.Ok},
		{"a writer gets in where another goes on as a reader", storyOf(readWrite, grant("1", "x", 5, 0, 10), shared("2", "x", 5, 11, 12),
			release("1", 20, 21), grant("3", "y", 6, 1, 22), release("2", 30, 31), release("3", 30, 31)), porcupine.Illegal},
		{"a reader is upgraded", storyOf(readWrite, shared("1", "x", 5, 0, 10), grant("2", "x", 5, 11, 12),
			release("2", 20, 21), release("1", 22, 23)), porcupine.Illegal},
		{"a writer's fence is below a reader's", storyOf(readWrite, shared("1", "x", 5, 0, 10), release("1", 11, 12),
			grant("2", "y", 4, 20, 21), release("2", 22, 23)), porcupine.Illegal},

		{"multi locks without a lock in common", storyOf(multi, of("/a,/b", "1", "x", 5, 0, 10), of("/c,/d", "2", "y", 4, 1, 11),
			release("1", 20, 21), release("2", 22, 23)), porcupine.Ok},
		{"multi locks with a lock in common", storyOf(multi, of("/a,/b", "1", "x", 5, 0, 10), of("/b,/c", "2", "y", 6, 1, 11),
			release("1", 20, 21), release("2", 22, 23)), porcupine.Illegal},
		{"a member alone beside its multi lock", storyOf(multi, of("/a,/b", "1", "x", 5, 0, 10), of("/b", "2", "y", 6, 1, 11),
			release("1", 20, 21), release("2", 22, 23)), porcupine.Illegal},
		{"a member's fence does not grow", storyOf(multi, of("/a,/b", "1", "x", 5, 0, 10), release("1", 20, 21),
			of("/b,/c", "2", "y", 4, 30, 31), release("2", 40, 41)), porcupine.Illegal},

		// If another client closes a session, its holds end unannounced.
		{"a revoked holder is succeeded at once", late.revoke(1, 30), porcupine.Ok},
		{"a holder is succeeded before it is revoked", late.revoke(1, 33), porcupine.Illegal},
		{"a holder of another session is revoked", late.revoke(2, 30), porcupine.Illegal},
		// Until its client has learned of it, it re-enters and counts what it no longer has.
		{"a holder re-enters what it has lost", again, porcupine.Illegal},
		{"a revoked holder re-enters", again.revoke(1, 30), porcupine.Ok},
		// The end of a client's earlier session has no effect on a lease of its next one, however long the client
		// waited for that.
		{"a former session is revoked", storyOf(reentrant, session(2, grant("1", "x", 5, 10, 20)), session(2, grant("2", "x", 5, 22, 23)),
			release("2", 24, 25), session(2, grant("3", "x", 5, 26, 27)), release("3", 28, 29), release("1", 30, 31)).revoke(1, 2), porcupine.Ok},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			verdicts := must.Get(c.story.assemble(t).Check(checkLimit))(t)
			if len(verdicts) != 1 || verdicts[0].Result != c.want {
				t.Errorf("verdicts %v; want one, %v", verdicts, c.want)
			}
		})
	}
}

func TestABadHistoryIsSavedWithItsPicture(t *testing.T) {
	t.Parallel()
	s := storyOf(history.Mutex(), grant("1", "x", 5, 0, 10), grant("2", "y", 6, 1, 15), release("1", 20, 40), release("2", 50, 60))
	verdicts := must.Get(s.assemble(t).Check(checkLimit))(t)
	picture := must.Get(verdicts[0].Save(t.TempDir()))(t)
	html := must.Get(os.ReadFile(picture))(t)
	text := must.Get(os.ReadFile(strings.TrimSuffix(picture, ".html") + ".json"))(t)
	for _, file := range []string{string(html), string(text)} {
		if !strings.Contains(file, "/a fence 6") {
			t.Errorf("does not show the second holder's fence:\n%.2000s", file)
		}
	}
}

func TestAssembleRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for name, records := range map[string][]history.Record{
		"an end without a grant": release("1", 1, 2),
		"two ends":               append(grant("1", "x", 5, 0, 1), append(release("1", 2, 3), lost(2, 3)...)...),
		"an unknown kind":        append(grant("1", "x", 5, 0, 1), history.Record{Kind: "dreamt", Lease: "1"}),
	} {
		if _, err := history.Assemble(records); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	unknown := storyOf(history.Model{Name: "sieve"}, grant("1", "x", 5, 0, 1)).assemble(t)
	if _, err := unknown.Check(checkLimit); err == nil {
		t.Error("an unknown model: no error")
	}
}
