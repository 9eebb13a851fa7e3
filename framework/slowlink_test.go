package framework_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// readBulk reads a znode of 1000 KiB n times at once.
func readBulk(t *testing.T, c *framework.Client, n int) {
	t.Helper()
	path := mustCreate(t, c, "/bulk", string(make([]byte, 1000<<10)))
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			_, _, err := c.Get(t.Context(), path)
			check(t, err)
		})
	}
	wg.Wait()
}

// mostKept is what a server may have to keep for a client: what is in flight, and one large reply.
const mostKept = 6 << 20

// The replies to reads take longer than a session without a reply exists. But replies arrive all the time, and a heartbeat
// does not wait behind all reads.
func TestReadsCostNeitherSessionNorLease(t *testing.T) {
	for name, reads := range map[string]int{"a session": 300, "a lease": 200} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var states trail
			l := link{down: 10 * mega}
			c := connect(t, srv.Addr(), framework.WithSessionTimeout(10*time.Second), framework.WithStateListener(states.add), l.over(t, srv))
			own, lease := mustCreate(t, c, "/own", "", framework.Ephemeral()), func() error { return nil }
			if name == "a lease" {
				lease = mustHold(t, c).Err
			}
			start := time.Now()
			readBulk(t, c, reads)
			wantErr(t, "the lease", lease(), nil)
			wantExists(t, c, own, true)
			wantList(t, "states", states.states(), []framework.State{connecting, connected})
			wantWithin(t, start, time.Duration(reads)*1000<<10*time.Second/(10*mega)*10/8)
			wantBetween(t, "bytes of replies that the server had to keep", l.kept(), 1, mostKept)
		})
	}
}

// A small call waits for a mebibyte of a GetEach at most, which has nearly all of the link.
func TestSmallCallsBesideAGetEach(t *testing.T) {
	for _, timeout := range []time.Duration{10 * time.Second, 30 * time.Second} {
		for _, rate := range []int{mega, 10 * mega} {
			for _, size := range []int{4 << 10, 64 << 10, 1000 << 10} {
				runVirtually(t, fmt.Sprintf("%v,%d,%d", timeout, rate, size), func(t *testing.T, srv *zkserver.Server) {
					l := &link{up: rate, down: rate, trip: time.Millisecond}
					other := virtual(t, srv)
					c := connect(t, srv.Addr(), framework.WithSessionTimeout(timeout), l.over(t, srv), framework.WithRetry(retry.Never()))
					var paths []string
					for i := range 20 * mega / size {
						paths = append(paths, mustCreate(t, other, fmt.Sprintf("/d/%d", i), string(make([]byte, size))))
					}
					ctx, cancel := context.WithCancel(t.Context())
					var calls sync.WaitGroup
					var worst time.Duration
					var short, late int
					calls.Go(func() {
						for ctx.Err() == nil {
							start := time.Now()
							if _, _, err := c.Exists(ctx, "/d"); err == nil {
								worst = max(worst, time.Since(start))
							}
							<-time.After(20 * time.Millisecond)
						}
					})
					calls.Go(func() {
						for ctx.Err() == nil {
							c2, stop := context.WithTimeout(ctx, 200*time.Millisecond)
							if _, _, err := c.Exists(c2, "/d"); err != nil && ctx.Err() == nil {
								late++
							}
							stop()
							short++
							<-time.After(20 * time.Millisecond)
						}
					})
					start := time.Now()
					_, errs := c.GetEach(ctx, paths...)
					took := time.Since(start)
					cancel()
					calls.Wait()
					check(t, errors.Join(errs...))
					at := float64(rate)
					if got := float64(len(paths)*size) / at / took.Seconds(); got < 0.95 {
						t.Errorf("GetEach has %.0f %% of the link, want 95 %%", 100*got)
					}
					if most := time.Duration(1.1*(1<<20)/at*float64(time.Second)) + 20*time.Millisecond; worst > most {
						t.Errorf("a small call took %v, want what a mebibyte takes, %v at most", worst, most)
					}
					if late > 0 && rate == 10*mega {
						t.Errorf("%d of %d calls with 200 ms were late", late, short)
					}
				})
			}
		}
	}
}

// A GetEach that is alone on a fast link with a long way has what the window admits in flight, even if, by the rate at first,
// it would end late.
func TestAGetEachAloneOnALongWay(t *testing.T) {
	for size, patience := range map[int]time.Duration{1000: 1500 * time.Millisecond, 4000: 2 * time.Second} {
		runVirtually(t, strconv.Itoa(size), func(t *testing.T, srv *zkserver.Server) {
			l := &link{up: 10 * mega, down: 10 * mega, trip: 100 * time.Millisecond}
			other := virtual(t, srv)
			c := connect(t, srv.Addr(), framework.WithSessionTimeout(10*time.Second), l.over(t, srv))
			paths := make([]string, 512)
			for i := range paths {
				paths[i] = mustCreate(t, other, fmt.Sprintf("/d/%d", i), string(make([]byte, size)))
			}
			for _, path := range paths[:40] { // lengths are known from these
				check(t, last(c.Get(t.Context(), path)))
			}
			_, errs := c.GetEach(within(t, patience), paths...)
			check(t, errors.Join(errs...))
		})
	}
}

// The replies to a GetEach of large znodes have little of a server's memory, though what the client has read so far in
// other directories was small, or what it reads first. A server near the end of its heap died of more.
func TestLargeZnodesAfterSmallOnes(t *testing.T) {
	const count, size = 64, 1000 << 10
	for name, tc := range map[string]struct {
		calls string // of small and large znodes, and their number if it is not count
		opts  []framework.Option
	}{
		"a call for each":              {calls: "s l"},
		"read before":                  {calls: "s l2 s s l"},
		"in one call":                  {calls: "sl"},
		"one of a known directory":     {calls: "s s1l"},
		"both known":                   {calls: "s l s1l"},
		"longer than a reply may be":   {calls: "s l l", opts: []framework.Option{framework.WithMaxPacket(1<<20, 64<<10)}},
		"every other one, in one call": {calls: "l1s1l1s1l1s1l1s1l1s1l1s1l"},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			l := &link{up: 10 * mega, down: 10 * mega, trip: time.Millisecond}
			c := connect(t, srv.Addr(), append(tc.opts, framework.WithSessionTimeout(30*time.Second), l.over(t, srv))...)
			paths := map[byte][]string{'s': fillDir(t, srv, "/small", count, 1), 'l': fillDir(t, srv, "/large", count, size)}
			for call := range strings.FieldsSeq(tc.calls) {
				var some []string
				for i := range len(call) {
					if of := paths[call[i]]; i+1 < len(call) && call[i+1] <= '9' {
						some = append(some, of[:call[i+1]-'0']...)
					} else {
						some = append(some, of...)
					}
				}
				_, errs := c.GetEach(t.Context(), some...)
				for i, err := range errs {
					if tc.opts != nil && strings.HasPrefix(some[i], "/large") {
						wantErr(t, some[i], err, framework.ErrTooLarge)
					} else {
						check(t, err)
					}
				}
			}
			most := mostKept // a reply that is too large is skipped while the next one is made
			if tc.opts == nil {
				most = 2*size + 64<<10
			}
			wantBetween(t, "bytes of replies that the server had to keep", l.kept(), 1, most)
		})
	}
}

// Small znodes were read again and again, and others in the same directory are large. A server has to keep fewer of them if
// the session is another one: it begins with few reads. Replies that are too large together are read one after another.
func TestLargeZnodesInAKnownDirectory(t *testing.T) {
	const count, size = 64, 1000 << 10
	for name, tc := range map[string]struct {
		opts    []framework.Option
		another bool // session
		want    error
		most    int // bytes
	}{
		"another session":            {another: true, most: 8 << 20},
		"longer than a reply may be": {opts: []framework.Option{framework.WithMaxPacket(1<<20, 64<<10)}, want: framework.ErrTooLarge, most: 2 * (count + 3) * size},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			l := &link{up: 10 * mega, down: 10 * mega, trip: time.Millisecond}
			c := connect(t, srv.Addr(), append(tc.opts, framework.WithSessionTimeout(30*time.Second), l.over(t, srv))...)
			small := fillDir(t, srv, "/d", count, 1)
			for range 20 {
				_, errs := c.GetEach(t.Context(), small...)
				check(t, errors.Join(errs...))
			}
			if tc.another {
				check(t, srv.Expire(c.Session().ID))
			}
			other := virtual(t, srv)
			large := make([]string, 2*count)
			for i := range large {
				large[i] = mustCreate(t, other, fmt.Sprintf("/d/large-%d", i), string(make([]byte, size)))
			}
			_, errs := c.GetEach(t.Context(), large...)
			for i, err := range errs {
				wantErr(t, large[i], err, tc.want)
			}
			wantBetween(t, "bytes of replies that the server had to keep", l.kept(), 1, tc.most)
		})
	}
}

// Many calls at once for small znodes of a known directory have no more under way than a slow link carries soon.
func TestManyCallsForKnownZnodesCostNoLease(t *testing.T) {
	const calls, count = 200, 64
	for _, size := range []int{10, 100} {
		runVirtually(t, strconv.Itoa(size), func(t *testing.T, srv *zkserver.Server) {
			var states trail
			l := &link{down: 40 * kilo}
			c := connect(t, srv.Addr(), framework.WithSessionTimeout(10*time.Second), framework.WithStateListener(states.add), l.over(t, srv))
			paths := fillDir(t, srv, "/d", count, size)
			h := mustHold(t, c)
			read := func() {
				_, errs := c.GetEach(t.Context(), paths...)
				check(t, errors.Join(errs...))
			}
			for range 3 {
				read()
			}
			var wg sync.WaitGroup
			for range calls {
				wg.Go(read)
			}
			wg.Wait()
			wantErr(t, "the lease", h.Err(), nil)
			wantList(t, "states", states.states(), []framework.State{connecting, connected})
			wantBetween(t, "bytes of replies that the server had to keep", l.kept(), 1, 128<<10)
		})
	}
}

// fillDir makes so many znodes of a size in bytes.
func fillDir(t *testing.T, srv *zkserver.Server, dir string, count, size int) []string {
	t.Helper()
	c := virtual(t, srv)
	paths := make([]string, count)
	for i := range paths {
		paths[i] = mustCreate(t, c, fmt.Sprintf("%s/%d", dir, i), string(make([]byte, size)))
	}
	return paths
}

// What is known of the lengths of data costs calls few round trips: one large znode among small ones, listings of znodes
// that have large data, and znodes of which each is in a directory of its own, or absent.
func TestKnownLengthsCostFewRoundTrips(t *testing.T) {
	const count, size, trip, trips = 64, 1000 << 10, 100 * time.Millisecond, 3
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		l := &link{up: 100 * mega, down: 100 * mega, trip: trip}
		c := connect(t, srv.Addr(), framework.WithSessionTimeout(30*time.Second), l.over(t, srv))
		small, large := fillDir(t, srv, "/small", count, 10), fillDir(t, srv, "/large", 1, size)
		among := append([]string{mustCreate(t, c, "/among/large", string(make([]byte, size)))}, fillDir(t, srv, "/among", count, 10)...)
		ends := slices.Concat(among[1:], among[:1])
		apart, absent := make([]string, count), make([]string, count)
		for i := range count {
			apart[i] = fillDir(t, srv, fmt.Sprintf("/apart/%d", i), 1, 10)[0]
			absent[i] = fmt.Sprintf("/small/absent-%d", i)
		}
		each := func(paths []string, want error) func() {
			return func() {
				_, errs := c.GetEach(t.Context(), paths...)
				for i, err := range errs {
					wantErr(t, paths[i], err, want)
				}
			}
		}
		for name, call := range map[string]func(){
			"small": each(small, nil), "among": each(among, nil), "ends": each(ends, nil), "apart": each(apart, nil), "absent": each(absent, framework.ErrNoNode),
			"more": each(slices.Concat(small, small[:1]), nil),
			"children": func() {
				_, _, errs := c.ChildrenEach(t.Context(), slices.Repeat(large, count)...)
				check(t, errors.Join(errs...))
			},
		} {
			for _, path := range slices.Concat(large, small) {
				check(t, last(c.Get(t.Context(), path)))
			}
			call()
			began := time.Now()
			call()
			wantBetween(t, name, time.Since(began), 0, trips*2*trip)
		}
	})
}

// Callers whose contexts end soon ask for three times as much as the link carries. The link carries what it
// can for them, the lease is kept, and nothing is left of the load when it ends.
func TestOverload(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		const (
			load    = 30 * time.Second
			each    = 10 * time.Millisecond
			calls   = 30   // in each
			carried = 1000 // reads a second
		)
		var states trail
		c := connect(t, srv.Addr(), framework.WithSessionTimeout(10*time.Second), framework.WithStateListener(states.add),
			framework.WithRetry(retry.Never()), (&link{up: 20 * kilo}).over(t, srv)) // a read takes 19 bytes
		mustCreate(t, c, "/d", "")
		h := mustHold(t, c)
		var ok atomic.Int64
		var wg sync.WaitGroup
		short := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, _, err := c.Get(ctx, "/d")
			return err
		}
		for start := time.Now(); time.Since(start) < load; sleep(each) {
			for range calls {
				wg.Go(func() {
					switch err := short(); {
					case err == nil:
						ok.Add(1)
					case !errors.Is(err, context.DeadlineExceeded):
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		wantErr(t, "the lease", h.Err(), nil)
		wantList(t, "states", states.states(), []framework.State{connecting, connected})
		if want := int64(carried * load.Seconds() * 0.8); ok.Load() < want {
			t.Errorf("%d reads succeeded, want at least %d", ok.Load(), want)
		}
		start := time.Now()
		for short() != nil {
			sleep(time.Millisecond)
		}
		wantWithin(t, start, 250*time.Millisecond)
	})
}

// With a lease, as without one, a large write over a slow link is progress.
func TestALargeWriteOverASlowLinkWithALease(t *testing.T) {
	for name, tc := range map[string]struct {
		link    *link
		timeout time.Duration
		writes  int
		lease   bool // the link carries heartbeats in time, behind the write
	}{
		"several take longer than one write may": {&link{up: mega}, 4 * time.Second, 8, true},
		"a quarter of the timeout is too short":  {&link{up: 170 * kilo}, 20 * time.Second, 1, true},
		"half of it is":                          {&link{up: 170 * kilo}, 10 * time.Second, 1, false},
		"all of it in a socket's buffer":         {&link{up: 170 * kilo, buffer: 2 << 20}, 20 * time.Second, 1, true},
		"behind a socket's buffer":               {&link{up: 170 * kilo, buffer: 200 << 10}, 20 * time.Second, 1, true},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			var states trail
			c := connect(t, srv.Addr(), framework.WithSessionTimeout(tc.timeout), framework.WithStateListener(states.add), tc.link.over(t, srv))
			mustCreate(t, c, "/d", "")
			h := mustHold(t, c)
			sleep(time.Minute)
			start := time.Now()
			var wg sync.WaitGroup
			for range tc.writes {
				wg.Go(func() {
					check(t, last(c.Set(within(t, time.Minute), "/d", make([]byte, 1000<<10), framework.AnyVersion)))
				})
			}
			wg.Wait()
			wantWithin(t, start, time.Duration(tc.writes)*1000<<10*time.Second/time.Duration(tc.link.up)*10/8)
			if tc.lease {
				wantErr(t, "the lease", h.Err(), nil)
			}
			wantList(t, "states", states.states(), []framework.State{connecting, connected})
		})
	}
}

// A frozen server's socket goes on taking large writes. They say nothing about the server: the client leaves it in
// time for its lease, or its session, whenever in the rhythm of its pings the server has frozen.
func TestAFrozenServerIsLeftWhateverLeaves(t *testing.T) {
	const timeout, phases = 12 * time.Second, 12
	for phase := range phases {
		for name, lease := range map[string]bool{"a lease": true, "none": false} {
			runVirtually(t, fmt.Sprintf("%s, phase %d", name, phase), func(t *testing.T, srv *zkserver.Server) {
				l := &link{}
				var states trail
				c := connect(t, srv.Frontend(0).Addr()+","+srv.Frontend(1).Addr(), framework.WithSessionTimeout(timeout), framework.WithStateListener(states.add), l.over(t, srv))
				mustCreate(t, c, "/d", "")
				var h *framework.SessionHold
				if lease {
					h = mustHold(t, c)
				}
				large := make([]byte, 100<<10)
				for range 20 { // the link is known to be fast
					check(t, last(c.Set(t.Context(), "/d", large, framework.AnyVersion)))
				}
				sleep(timeout + timeout/3*time.Duration(phase)/phases)
				for i := range 2 {
					if f := srv.Frontend(i); f.Addr() == l.server() {
						f.Freeze()
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for start := time.Now(); time.Since(start) < 2*timeout; {
					sleep(timeout / 16)
					wg.Go(func() { _, _ = c.Set(ctx, "/d", large, framework.AnyVersion) }) // those in flight are lost with the server
				}
				cancel()
				wg.Wait()
				if lease {
					wantErr(t, "the lease", h.Err(), nil)
				}
				wantList(t, "states", states.states(), []framework.State{connecting, connected, suspended, connected})
			}, zkserver.WithFrontends(2))
		}
	}
}

// A client that is moved from server to server finishes its calls first.
func TestAMoveFailsNoCall(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv, framework.WithRetry(retry.Never()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var failed, calls atomic.Int64
		var first atomic.Value
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					p := fmt.Sprintf("/d%d-%d/x/y", g, i)
					_, err := c.Create(ctx, p, nil, framework.WithParents())
					if calls.Add(1); err != nil && ctx.Err() == nil {
						failed.Add(1)
						first.CompareAndSwap(nil, err.Error())
					}
					<-time.After(time.Millisecond)
				}
			})
		}
		for i := range 100 {
			_ = c.SetServers(srv.Frontend(i % 2).Addr())
			<-time.After(100 * time.Millisecond)
		}
		cancel()
		wg.Wait()
		if failed.Load() > 0 {
			t.Errorf("%d of %d calls failed by planned moves, the first with %v", failed.Load(), calls.Load(), first.Load())
		}
	}, zkserver.WithFrontends(2), zkserver.WithCommitTime(2*time.Millisecond))
}

// The ACL of a parent makes a request longer than servers accept.
func TestAParentsLargeACLIsRefusedBeforeItIsSent(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv, framework.WithRetry(retry.Times(3, time.Millisecond)), framework.WithMaxPacket(16<<10, 64<<10),
			framework.WithACLProvider(func(path string) []acl.Entry {
				if strings.HasSuffix(path, "/parent") {
					return []acl.Entry{{Perms: acl.All, Scheme: "digest", ID: strings.Repeat("x", 20<<10)}}
				}
				return nil
			}))
		_, err := c.Create(t.Context(), "/parent/child", nil, framework.WithParents())
		if !errors.Is(err, framework.ErrTooLarge) {
			t.Errorf("not ErrTooLarge: %.200v", err)
		}
	}, zkserver.WithPacketLimit(18<<10))
}

// What arrives on a connection says no more once that has ended: it may have been on its way for long. Then
// the session is lost a session timeout after the latest request that was answered.
func TestASessionIsPresumedByWhatWasAnswered(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		const timeout = 10 * time.Second
		var states trail
		l := link{down: 100 * kilo}
		other := virtual(t, srv)
		mustCreate(t, other, "/d", string(make([]byte, 1000<<10)))
		c := connect(t, srv.Addr(), framework.WithSessionTimeout(timeout), framework.WithStateListener(states.add), l.over(t, srv))
		sleep(2 * time.Second)
		wantExists(t, c, "/d", true)
		answered := time.Now()
		read := background(func() error { return last(c.Get(t.Context(), "/d")) })
		sleep(timeout - time.Second)
		srv.Refuse()
		l.close()
		states.await(t, connecting, connected, suspended, lost)
		wantBetween(t, "the session's end", states.last(lost).At.Sub(answered), timeout-10*time.Millisecond, timeout+10*time.Millisecond)
		srv.Accept()
		<-read
	})
}

// What is in flight on a link that becomes slow takes long. A heartbeat behind it would be late; on another connection
// it is not.
func TestALinkThatBecomesSlowCostsNoLease(t *testing.T) {
	for _, tc := range []struct {
		timeout time.Duration
		slow    int
	}{
		{10 * time.Second, 500 * kilo},
		{10 * time.Second, 100 * kilo},
		{30 * time.Second, 100 * kilo},
	} {
		runVirtually(t, fmt.Sprintf("%v, %d bytes/s", tc.timeout, tc.slow), func(t *testing.T, srv *zkserver.Server) {
			l := &link{down: 10 * mega}
			c := connect(t, srv.Addr(), framework.WithSessionTimeout(tc.timeout), l.over(t, srv))
			mustCreate(t, c, "/d", string(make([]byte, 64<<10)))
			h := mustHold(t, c)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range 80 {
				wg.Go(func() {
					for ctx.Err() == nil {
						if _, _, err := c.Get(ctx, "/d"); ctx.Err() == nil {
							check(t, err)
						}
					}
				})
			}
			sleep(2 * time.Second)
			l.slowDown(tc.slow)
			sleep(2 * tc.timeout)
			wantErr(t, "the lease", h.Err(), nil)
			cancel()
			wg.Wait()
		})
	}
}

// A reply may be far longer than what such replies had lately. A heartbeat behind it would be late; on another
// connection it is not.
func TestALongReplyAmongShortOnesCostsNoLease(t *testing.T) {
	for _, timeout := range []time.Duration{6 * time.Second, 10 * time.Second} {
		runVirtually(t, timeout.String(), func(t *testing.T, srv *zkserver.Server) {
			l := &link{up: 100 * kilo, down: 100 * kilo}
			other := virtual(t, srv)
			mustCreate(t, other, "/small", "1")
			mustCreate(t, other, "/large", string(make([]byte, 1000<<10)))
			c := connect(t, srv.Addr(), framework.WithSessionTimeout(timeout), l.over(t, srv), framework.WithRetry(retry.Never()))
			for range 50 {
				check(t, last(c.Get(t.Context(), "/small")))
			}
			h := mustHold(t, c)
			read := background(func() error { return last(c.Get(t.Context(), "/large")) })
			sleep(2 * timeout)
			wantErr(t, "the lease", h.Err(), nil)
			<-read
		})
	}
}

// Nothing is ahead of the heartbeats of an idle client. However long one takes, a new connection would take longer.
func TestALongRoundTripCostsNoLease(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, proxy := proxied(t, srv, framework.WithSessionTimeout(6*time.Second))
		h := mustHold(t, c)
		watches := make([]*framework.TreeWatch, 500)
		for i := range watches {
			watches[i] = must.Get(c.WatchTree(t.Context(), "/"))(t)
		}
		proxy.SetLatency(900 * time.Millisecond)
		for _, w := range watches {
			w.Close() // makes the session look at what is due
			sleep(60 * time.Millisecond)
		}
		wantErr(t, "the lease", h.Err(), nil)
	})
}

// Each of many writes has to know what the session has seen before it. They ask for that once, not each.
func TestTheFirstWritesOfASessionAskOnce(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		mustCreate(t, virtual(t, srv), "/d", "")
		asked := srv.Rules().Add(fault.Rule{Op: fault.Exists, Action: fault.Pass, Times: fault.Forever})
		c := virtual(t, srv)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { check(t, last(c.Set(t.Context(), "/d", nil, framework.AnyVersion))) })
		}
		wg.Wait()
		wantEqual(t, "reads ahead of the writes", asked.Hits(), 1)
	})
}
