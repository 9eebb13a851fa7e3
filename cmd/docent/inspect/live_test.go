package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// follow returns a Live that is closed when the test has ended.
func follow(t testing.TB, c *framework.Client, root string) *inspect.Live {
	t.Helper()
	return followWithin(t, c, root, inspect.FollowLimits{})
}

func followWithin(t testing.TB, c *framework.Client, root string, limits inspect.FollowLimits) *inspect.Live {
	t.Helper()
	l := must.Get(inspect.Follow(c, root, limits))(t)
	t.Cleanup(func() { must.OK(t, l.Close()) })
	return l
}

// settle lets the Live show what has happened.
func settle() {
	<-time.After(time.Second)
	synctest.Wait()
}

// checkBriefs fails the test unless the snapshots have the same locks, and returns how many.
func checkBriefs(t *testing.T, is, scanned inspect.Snapshot) int {
	t.Helper()
	got, want := briefs(is), briefs(scanned)
	if !slices.Equal(got, want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
	return len(want)
}

func briefs(s inspect.Snapshot) []string {
	var all []string
	for _, l := range s.Locks {
		all = append(all, l.Path+" "+brief(l)+fmt.Sprint(participantsOf(l)))
	}
	return all
}

// A Live is stale while the connection is lost: it keeps what it has and says since when.
func TestLive_says_how_well_it_knows_the_locks(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		other, c := e.client(t), e.client(t)
		contender(t, other, "/l/a", "")
		e.server.Refuse()
		e.server.Cut()
		live := follow(t, c, "/l")
		settle()
		if v := live.View(); v.State != inspect.Connecting || v.Cause == nil || v.Complete || len(v.Locks) > 0 {
			t.Errorf("without a connection: %v, cause %v, complete %v, %d locks", v.State, v.Cause, v.Complete, len(v.Locks))
		}
		e.server.Accept()
		<-time.After(20 * time.Second)
		settle()
		v := live.View()
		if v.State != inspect.Current || v.Cause != nil || !v.Complete || len(v.Locks) != 1 {
			t.Errorf("connected: %v, cause %v, complete %v, %d locks", v.State, v.Cause, v.Complete, len(v.Locks))
		}
		lost := time.Now()
		e.server.Refuse()
		e.server.Cut()
		<-time.After(2 * time.Second)
		settle()
		v = live.View()
		if v.State != inspect.Stale || v.Cause == nil || !v.Complete || len(v.Locks) != 1 || v.At.After(lost) || v.Since.Before(lost) {
			t.Errorf("cut at %v: %v since %v, at %v, cause %v, complete %v, %d locks", lost, v.State, v.Since, v.At, v.Cause, v.Complete, len(v.Locks))
		}
		// The cause is the outage, never the end of the context with which the cache was asked.
		if !errors.Is(v.Cause, framework.ErrNotConnected) || errors.Is(v.Cause, context.Canceled) || strings.Contains(v.Cause.Error(), "canceled") ||
			zktel.ErrorType(v.Cause) != zktel.ErrorType(framework.ErrNotConnected) {
			t.Errorf("the cause is %v, of type %q", v.Cause, zktel.ErrorType(v.Cause))
		}
		e.server.Accept()
		<-time.After(20 * time.Second)
		contender(t, other, "/l/b", "")
		settle()
		if v := live.View(); v.State != inspect.Current || len(v.Locks) != 2 {
			t.Errorf("connected again: %v, %d locks", v.State, len(v.Locks))
		}
	})
}

// Views are at most four a second, and the last one is given twice. Then nothing is sent.
func TestLive_costs_nothing_while_nothing_changes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var commits atomic.Int64
		e := &ensemble{zkserver.Run(t, append(zkenv.DrawVersion(t), zkserver.WithObserver(func(zkserver.Transaction) { commits.Add(1) }))...)}
		other, c := e.client(t), e.client(t)
		live := follow(t, c, "/l")
		settle()
		var views atomic.Int64
		done := make(chan struct{})
		go func() { // the test waits for it
			defer close(done)
			for range live.Views(t.Context()) {
				views.Add(1)
			}
		}()
		begun := time.Now()
		for i := range 100 {
			contender(t, other, fmt.Sprintf("/l/%d", i), "")
			<-time.After(20 * time.Millisecond)
		}
		if most := int64(time.Since(begun)/(250*time.Millisecond)) + 2; views.Load() > most || views.Load() < 3 {
			t.Errorf("%d views in %v, want %d at most", views.Load(), time.Since(begun), most)
		}
		<-time.After(5 * time.Second)
		synctest.Wait()
		seen, committed := views.Load(), commits.Load()
		<-time.After(time.Minute)
		synctest.Wait()
		if views.Load() != seen || commits.Load() != committed {
			t.Errorf("in a minute without a change: %d views and %d transactions", views.Load()-seen, commits.Load()-committed)
		}
		contender(t, other, "/l/0", "")
		<-time.After(5 * time.Second)
		synctest.Wait()
		if got := views.Load() - seen; got != 2 {
			t.Errorf("%d views of a change, want it and a second look", got)
		}
		must.OK(t, live.Close()) // ends the views
		<-done
	})
}

func TestFollow_refuses_faulty_arguments(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		if _, err := inspect.Follow(e.client(t), "no/path", inspect.FollowLimits{}); !errors.Is(err, framework.ErrInvalidPath) {
			t.Errorf("a faulty path: %v", err)
		}
	})
}

// A Live shows what it can't read as Scan does. ZooKeeper 3.8.4 and later do not notify a session of a
// znode that it may not read. So the Live sees the deletion when it reads all again.
func TestLive_shows_what_it_can_not_read(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c, observer := e.client(t), e.client(t)
		contender(t, c, "/open", "")
		contender(t, c, "/half", "")
		closed := contender(t, c, "/half", "", hidden())
		mustCreate(t, c, "/secret", "", hidden())
		live := follow(t, observer, "/")
		settle()
		if v := live.View(); v.State != inspect.Current || !v.Complete {
			t.Errorf("%v, complete %v", v.State, v.Complete)
		}
		checkUnread(t, live.View().Snapshot, closed)
		for _, path := range []string{"/secret", closed} {
			must.OK(t, c.Delete(t.Context(), path))
		}
		e.server.Cut()
		<-time.After(20 * time.Second)
		settle()
		if v := live.View(); len(v.Unread) != 0 || !slices.Equal(briefs(v.Snapshot), briefs(mustScan(t, c, "/", inspect.Limits{}))) {
			t.Errorf("unread %v, locks %q", v.Unread, briefs(v.Snapshot))
		}
	})
}

// A znode that becomes too large is no event of the cache. It is shown within a moment nevertheless.
func TestLive_shows_a_contender_that_is_too_large(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c, observer := e.client(t), e.client(t, framework.WithMaxPacket(1<<20, 4<<10))
		contender(t, c, "/l", "")
		live := follow(t, observer, "/")
		settle()
		large := contender(t, c, "/l", strings.Repeat("x", 6000))
		settle()
		v := live.View()
		if len(v.Unread) != 1 || v.Unread[0].Path != large || !errors.Is(v.Unread[0].Err, framework.ErrTooLarge) {
			t.Errorf("unread: %v", v.Unread)
		}
		if l, _ := v.Lock("/l"); len(l.Contenders) != 2 || l.Complete {
			t.Errorf("%s, complete %v", brief(l), l.Complete)
		}
	})
}

// A request to release an unfair mutex replaces its metadata. Its epoch shows that it is one.
func TestLive_shows_an_unfair_mutex_that_was_revoked(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c := e.client(t)
		m := orPanic(lock.NewUnfairMutex(c, "/u/lock"))
		held := orPanic(m.Lock(t.Context()))
		live := follow(t, c, "/u")
		settle()
		must.OK(t, lock.Revoke(t.Context(), c, held.Node()))
		settle()
		if n := checkBriefs(t, live.View().Snapshot, mustScan(t, c, "/u", inspect.Limits{})); n != 1 {
			t.Errorf("%d locks", n)
		}
		must.OK(t, held.Release(t.Context()))
	})
}

// TestFollow_reads_no_data_of_others: of znodes that are no locks, a Live has the names and Stats. It reads
// the data of contenders alone, at the rate that it was given.
func TestFollow_reads_no_data_of_others(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		route, c := env.Route(t), env.Client(t)
		const others, rate = 500, 100
		mustCreate(t, c, "/app", "")
		for i := range others {
			mustCreate(t, c, fmt.Sprintf("/app/%04d", i), strings.Repeat("x", 1000))
		}
		for range 3 {
			contender(t, c, "/lock", "")
		}
		unfair := orPanic(orPanic(lock.NewUnfairMutex(c, "/unfair/lock")).Lock(t.Context()))
		mustCreate(t, c, "/semaphore", "2")
		mustCreate(t, c, "/semaphore/"+strings.Repeat("0a", 16), "", framework.Ephemeral())
		observer := route.Client(t)
		must.OK(t, observer.AwaitConnected(t.Context()))
		route.ResetRequests()
		begun := time.Now()
		live := followWithin(t, observer, "/", inspect.FollowLimits{Rate: rate})
		var view inspect.View
		for view = range live.Views(t.Context()) {
			if view.State == inspect.Current {
				break
			}
		}
		took, reads := time.Since(begun), 0
		for _, rq := range route.Requests() {
			switch rq.Op {
			case fault.GetData:
				reads++
			case fault.MultiRead:
				reads += len(rq.Parts)
			}
		}
		if most := 2 * (others + 20) * time.Second / rate; took < others*time.Second/rate || took > most {
			t.Errorf("the fill took %v, want %v to %v", took, others*time.Second/rate, most)
		}
		if reads > 12 { // six of contenders and the semaphore, the rest of znodes with short data
			t.Errorf("%d reads of data, of %d znodes that are no locks", reads, others)
		}
		if n := checkBriefs(t, view.Snapshot, mustScan(t, c, "/", inspect.Limits{})); n != 3 || !view.Complete {
			t.Errorf("%d locks, complete %v", n, view.Complete)
		}
		must.OK(t, unfair.Release(t.Context()))
	}, zkenv.Only("it counts requests", zkenv.Embedded))
}

// TestFollow_leaves_znodes_out: a Live has as many znodes as its limit, says how many others there are, and
// has them when there is room.
func TestFollow_leaves_znodes_out(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, e *ensemble) {
		c := e.client(t)
		for i := range 20 {
			mustCreate(t, c, fmt.Sprintf("/a/%02d", i), "data of others")
		}
		live := followWithin(t, e.client(t), "/", inspect.FollowLimits{Znodes: 12})
		settle()
		if v := live.View(); v.State != inspect.Current || v.Complete || v.LeftOut != 10 { // "/", "/a" and ten are copied
			t.Errorf("%v, complete %v, %d left out", v.State, v.Complete, v.LeftOut)
		}
		contender(t, c, "/z", "")
		settle()
		if v := live.View(); v.LeftOut != 11 || len(v.Locks) != 0 { // "/z" is, with what is below it
			t.Errorf("%d left out, locks %q", v.LeftOut, briefs(v.Snapshot))
		}
		for i := range 15 {
			must.OK(t, c.Delete(t.Context(), fmt.Sprintf("/a/%02d", i)))
		}
		for _, when := range []string{"with room", "after an outage"} {
			settle()
			settle()
			if v := live.View(); v.State != inspect.Current || !v.Complete || v.LeftOut != 0 || len(v.Locks) != 1 {
				t.Errorf("%s: %v, complete %v, %d left out, locks %q", when, v.State, v.Complete, v.LeftOut, briefs(v.Snapshot))
			}
			e.server.Cut() // all is read again
			<-time.After(20 * time.Second)
		}
	})
}
