package watch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/change"
	"github.com/docent-go/docent/cmd/docent/internal/form/formtest"
	"github.com/docent-go/docent/cmd/docent/internal/trace"
	"github.com/docent-go/docent/cmd/docent/internal/watch"
	"github.com/docent-go/docent/internal/must"
)

// texts returns the events without their times: "granted /a b", and marks.
func texts(events []change.Event) []string {
	var all []string
	for _, e := range events {
		text := string(e.What) + " " + e.Path
		if e.Contender.Meta != nil {
			text += " " + e.Contender.Meta.Owner
		}
		for mark, set := range map[string]bool{" before": e.Before, " unsure": e.Unsure} {
			if set {
				text += mark
			}
		}
		all = append(all, text)
	}
	return all
}

func TestEvents(t *testing.T) {
	t.Parallel()
	current := func(locks ...inspect.Lock) inspect.View { return viewOf(inspect.Current, noon, locks...) }
	stale := func(locks ...inspect.Lock) inspect.View { return viewOf(inspect.Stale, noon, locks...) }
	// A semaphore's waiter has its znode in the queue, and later one among the leases.
	turn := queue("/s", "a", "b")
	permit := queue("/s", "a")
	moved := turn.Contenders[1]
	moved.Znode, moved.Turn, moved.Czxid, moved.State = "/s/leases/b", "/s/b", 999, inspect.Holds
	permit.Contenders = append(permit.Contenders, moved)
	moved.State = inspect.Waits
	next := queue("/s", "a")
	next.Contenders = append(next.Contenders, moved)
	// A successor has the same name in an unfair mutex.
	again := queue("/a", "a")
	again.Contenders[0].Czxid = 1000
	unread := queue("/a", "a")
	unread.Contenders[0].State, unread.Contenders[0].Czxid = inspect.Unknown, 0
	for name, test := range map[string]struct {
		before, after inspect.View
		want          []string
	}{
		"nothing changes":  {current(queue("/a", "a", "b")), current(queue("/a", "a", "b")), nil},
		"the first view":   {inspect.View{}, current(queue("/a", "a", "b!")), []string{"live /", "granted /a a before", "revoked /a b before", "queued /a b before"}},
		"after scanning":   {viewOf(inspect.Scanning, noon), current(queue("/a", "a")), []string{"live /", "granted /a a before"}},
		"not read yet":     {viewOf(inspect.Connecting, noon), viewOf(inspect.Scanning, noon, queue("/a", "a")), nil},
		"a new holder":     {current(), current(queue("/a", "a")), []string{"granted /a a"}},
		"a new waiter":     {current(queue("/a", "a")), current(queue("/a", "a", "b")), []string{"queued /a b"}},
		"a hand-off":       {current(queue("/a", "a", "b")), current(queue("/a", "b")), []string{"released /a a", "granted /a b"}},
		"the last release": {current(queue("/a", "a")), current(), []string{"released /a a"}},
		"a waiter leaves":  {current(queue("/a", "a", "b", "c")), current(queue("/a", "a", "c")), []string{"gone /a b"}},
		"a short hold": {
			current(queue("/a", "a", "b", "c")), current(queue("/a", "c")),
			[]string{"released /a a", "gone /a b unsure", "granted /a c"},
		},
		"a revocation":          {current(queue("/a", "a", "b")), current(queue("/a", "a!", "b")), []string{"revoked /a a"}},
		"no second revocation":  {current(queue("/a", "a!")), current(queue("/a", "a!")), nil},
		"two locks":             {current(queue("/b", "a")), current(queue("/a", "c"), queue("/b", "b")), []string{"granted /a c", "released /b a", "granted /b b"}},
		"the connection breaks": {current(queue("/a", "a")), stale(), []string{"stale /"}},
		"it stays broken":       {stale(queue("/a", "a")), stale(), nil},
		"it is back": {
			stale(queue("/a", "a", "b")), current(queue("/a", "b")),
			[]string{"live /", "released /a a unsure", "granted /a b unsure"},
		},
		"a semaphore's turn":       {current(turn), current(permit), []string{"granted /s b"}},
		"its wait at the permits":  {current(turn), current(next), nil},
		"an unfair mutex":          {current(queue("/a", "a")), current(again), []string{"released /a a", "granted /a a"}},
		"a znode is read at last":  {current(unread), current(queue("/a", "a")), []string{"granted /a a"}},
		"a znode that is unread":   {current(), current(unread), nil},
		"one that was never read":  {current(unread), current(), nil},
		"a reading does not renew": {current(queue("/a", "a")), current(unreadHolder()), nil},
	} {
		events := change.Events("/", test.before, test.after)
		if got := texts(events); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		for _, e := range events {
			formtest.Check(t, "event", marshal(t, e.Form()))
		}
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	text := must.Get(json.Marshal(v))(t)
	return string(text)
}

// unreadHolder returns a lock whose holder's name shows that it holds, and whose znode was not read.
func unreadHolder() inspect.Lock {
	l := queue("/a", "a")
	l.Contenders[0].Czxid = 0
	return l
}

// Nobody saw the begin of a hold that began before the watch, or while docent had lost ZooKeeper. It is no longer than
// since the last view without it, or since its znode was created; if docent may not read that, nothing says how long.
func TestFollower_knows_how_long_a_hold_may_have_been(t *testing.T) {
	t.Parallel()
	unread := unreadHolder()
	unread.Contenders[0].Meta, unread.Contenders[0].Created = nil, time.Time{}
	born := queue("/a", "b")
	born.Contenders[0].Created = noon.Add(50 * time.Second)
	for name, test := range map[string]struct {
		views []inspect.View
		held  time.Duration
	}{
		"a waiter's, at an outage": {[]inspect.View{
			viewOf(inspect.Current, noon, queue("/a", "a", "b")), viewOf(inspect.Stale, noon.Add(20*time.Second)),
			viewOf(inspect.Current, noon.Add(time.Minute), queue("/a", "b")), viewOf(inspect.Current, noon.Add(65*time.Second)),
		}, 65 * time.Second},
		"of who came in an outage": {[]inspect.View{
			viewOf(inspect.Current, noon), viewOf(inspect.Stale, noon.Add(20*time.Second)),
			viewOf(inspect.Current, noon.Add(time.Minute), born), viewOf(inspect.Current, noon.Add(65*time.Second)),
		}, 15 * time.Second},
		"unread, of before": {[]inspect.View{
			viewOf(inspect.Current, noon, unread), viewOf(inspect.Current, noon.Add(5*time.Second)),
		}, 0},
	} {
		f := watch.NewFollower("/", nil)
		var last change.Event
		for _, view := range test.views {
			if events := f.See(view); len(events) > 0 {
				last = events[len(events)-1]
			}
		}
		line := watch.Line(last)
		if last.What != change.Released || !last.Unsure || last.Held != test.held || strings.Contains(line, "held for") != (test.held > 0) {
			t.Errorf("%s: %s, held for %v, want %v", name, line, last.Held, test.held)
		}
	}
}

// A semaphore's permits that docent may not read are holders, until a waiter comes that they can't be told from.
func TestFollower_knows_a_holder_that_is_unknown_later(t *testing.T) {
	t.Parallel()
	in := func(state inspect.State, others ...string) []inspect.Lock {
		l := queue("/s", append([]string{"a"}, others...)...)
		l.Contenders[0].State, l.Contenders[0].Czxid, l.Contenders[0].Meta = state, 0, nil
		return []inspect.Lock{l}
	}
	f := change.Follower{Root: "/"}
	for i, step := range []struct {
		locks []inspect.Lock
		want  []string
	}{
		{in(inspect.Holds), []string{"live /", "granted /s before"}},
		{in(inspect.Unknown, "b"), []string{"queued /s b"}},
		{in(inspect.Unknown, "b"), nil},
		{in(inspect.Holds), []string{"gone /s b"}},
		{in(inspect.Unknown, "b"), []string{"queued /s b"}},
		{[]inspect.Lock{queue("/s", "b")}, []string{"released /s", "granted /s b"}},
		{in(inspect.Unknown, "b"), []string{"queued /s b"}}, // it never was a holder's
		{[]inspect.Lock{queue("/s", "b")}, []string{"granted /s b"}},
	} {
		if got := texts(f.See(viewOf(inspect.Current, noon, step.locks...))); !slices.Equal(got, step.want) {
			t.Errorf("view %d: got %q, want %q", i, got, step.want)
		}
	}
}

func TestFollower_measures_waits_and_holds(t *testing.T) {
	t.Parallel()
	f := watch.NewFollower("/locks", nil)
	see := func(after time.Duration, state inspect.ViewState, names ...string) []string {
		var locks []inspect.Lock
		if len(names) > 0 {
			locks = append(locks, queue("/locks/a", names...))
		}
		view := viewOf(state, noon.Add(after), locks...)
		if state == inspect.Stale {
			view.Cause = errors.New("no \x1b[31mconnection")
		}
		var lines []string
		for _, e := range f.See(view) {
			lines = append(lines, watch.Line(e))
		}
		return lines
	}
	var got []string
	got = append(got, see(0, inspect.Current, "x", "y")...)
	got = append(got, see(30*time.Second, inspect.Current, "y")...)
	got = append(got, see(50*time.Second, inspect.Current, "y", "z")...)
	got = append(got, see(60*time.Second, inspect.Current, "y!")...)
	got = append(got, see(70*time.Second, inspect.Stale)...)
	got = append(got, see(72*time.Second, inspect.Current, "y!")...)
	got = append(got, see(75*time.Second, inspect.Current)...)
	want := []string{
		"12:00:00Z live     /locks",
		"12:00:00Z granted  /locks/a lock host:17 x, since 2026-03-01 11:58:00Z",
		"12:00:00Z queued   /locks/a lock host:17 y, since 2026-03-01 11:59:00Z",
		"12:00:30Z released /locks/a lock host:17 x, held for at most 2m30s",
		"12:00:30Z granted  /locks/a lock host:17 y, waited for 1m30s",
		"12:00:50Z queued   /locks/a lock host:17 z",
		"12:01:00Z gone     /locks/a lock host:17 z, waited for 1m00s",
		"12:01:00Z revoked  /locks/a lock host:17 y",
		`12:01:10Z stale    /locks: no \u001b[31mconnection`,
		"12:01:12Z live     /locks",
		"12:01:15Z released /locks/a lock host:17 y, held for 45s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var file bytes.Buffer
	must.OK(t, trace.Write(&file, f.Holds(noon.Add(time.Hour))))
	for _, want := range []string{`"name":"/locks/a"`, `"dur":150000000`, `"dur":45000000`, `"owner":"y"`} {
		if !strings.Contains(file.String(), want) {
			t.Errorf("the trace lacks %s: %s", want, file.String())
		}
	}
}
