package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

// The requests of a Mutex, which docs/sizing.md multiplies.
const (
	writesPerLock      = 2.0 // create, delete
	readsPerLock       = 1.0 // the listing that is sent behind the create
	writesPerDirectory = 2.0 // the create that finds none, and the container's
	readsPerDirectory  = 1.0 // the listing that finds none
	readsPerWait       = 4.0 // the predecessor and the own znode watched, the queue listed again
	readsPerHold       = 1.0 // the own znode is watched if the lock is held for longer than holdNoticed
	holdNoticed        = 50 * time.Millisecond
	countedRoundTrip   = time.Millisecond
	countedTimeout     = 30 * time.Second
	bytesPerListedName = 59
)

// A countedClient is a client whose requests are counted.
type countedClient struct {
	proxy  *zkproxy.Proxy
	client *framework.Client
	mutex  *lock.Mutex
}

func (c *countedClient) lock(t *testing.T) *lock.Lease {
	t.Helper()
	lease, err := c.mutex.Lock(asOwner(t, ""))
	if err != nil {
		t.Error(err)
	}
	return lease
}

func (c *countedClient) writes() float64 { return float64(c.proxy.Count(fault.Create, fault.Delete)) }

func (c *countedClient) reads() float64 {
	return float64(c.proxy.Count(fault.GetChildren, fault.GetData, fault.Exists))
}

// countedClients returns clients of the lock /counted/lock, whose directory exists.
func countedClients(t *testing.T, n int) []*countedClient {
	t.Helper()
	server := virtualServer(t)
	var all []*countedClient
	for range n {
		proxy := behindPipe(t, server)
		proxy.SetLatency(countedRoundTrip)
		traced := framework.WithTracerProvider(sdktrace.NewTracerProvider()) // a link to the holder costs no request
		c := must.Get(framework.NewClient(server.Addr(), framework.WithDialer(proxy.Dial), framework.WithSessionTimeout(countedTimeout), traced))(t)
		t.Cleanup(func() { _ = c.Close() })
		all = append(all, &countedClient{proxy, c, must.Get(lock.NewMutex(c, "/counted/lock"))(t)})
	}
	must.OK(t, all[0].lock(t).Release(t.Context()))
	for _, c := range all {
		c.proxy.ResetRequests()
	}
	return all
}

// expectAbout fails the test unless what was sent is at most what is expected, and at most one less.
func expectAbout(t *testing.T, what string, sent, expected float64) {
	t.Helper()
	if sent > expected || sent < expected-1 {
		t.Errorf("%s: %.2f, want at most %v, and at least %v", what, sent, expected, expected-1)
	}
}

func TestRequestsOfAFreeLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rounds = 100
		c := countedClients(t, 1)[0]
		for range rounds {
			begun := time.Now()
			lease := c.lock(t)
			if took := time.Since(begun); took != countedRoundTrip { // the listing does not wait for the creation's reply
				t.Errorf("the lock took %v, want a round trip of %v", took, countedRoundTrip)
			}
			must.OK(t, lease.Release(t.Context()))
		}
		expectAbout(t, "writes of a free lock", c.writes()/rounds, writesPerLock)
		expectAbout(t, "reads of a free lock", c.reads()/rounds, readsPerLock)
		c.proxy.ResetRequests()
		for range rounds {
			lease := c.lock(t)
			<-time.After(2 * holdNoticed)
			must.OK(t, lease.Release(t.Context()))
		}
		expectAbout(t, "reads of a lock that is held for a while", c.reads()/rounds, readsPerLock+readsPerHold)
		mustRelease(t, mustTry(t, c.mutex))
		if n := c.proxy.Count(fault.Sync); n != 0 { // which is for who would be refused otherwise
			t.Errorf("%d syncs to try a free lock", n)
		}
	})
}

func TestRequestsOfANewDirectory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := countedClients(t, 1)[0]
		mutex := must.Get(lock.NewMutex(c.client, "/counted/new"))(t)
		begun := time.Now()
		lease := must.Get(mutex.Lock(t.Context()))(t)
		if took := time.Since(begun); took > 2*countedRoundTrip {
			t.Errorf("the lock took %v, want two round trips of %v", took, countedRoundTrip)
		}
		must.OK(t, lease.Release(t.Context()))
		if got, want := c.writes(), writesPerLock+writesPerDirectory; got != want {
			t.Errorf("%v writes, want %v", got, want)
		}
		if got, want := c.reads(), readsPerLock+readsPerDirectory; got != want {
			t.Errorf("%v reads, want %v", got, want)
		}
	})
}

func TestRequestsOfAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const waiters = 20
		all := countedClients(t, waiters+1)
		first := all[0].lock(t)
		done := make(chan struct{})
		for _, c := range all[1:] {
			go func() {
				defer func() { done <- struct{}{} }()
				lease := c.lock(t)
				<-time.After(10 * time.Millisecond)
				wantErr(t, "release", lease.Release(t.Context()), nil)
			}()
			<-time.After(10 * time.Millisecond) // in line, one after the other
		}
		must.OK(t, first.Release(t.Context()))
		for range waiters {
			<-done
		}
		var writes, reads float64
		for _, c := range all[1:] {
			writes += c.writes()
			reads += c.reads()
		}
		expectAbout(t, "writes of a lock that was waited for", writes/waiters, writesPerLock)
		expectAbout(t, "reads of a lock that was waited for", reads/waiters, readsPerLock+readsPerWait)
	})
}

func TestRequestsOfHolding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const (
			periods    = 120
			beatsPerT  = 4.0 // transactions of a client that has leases and writes nothing
			probesPerT = 4.0 // reads, one ahead of each such transaction
			pingsPerT  = 3.0
		)
		c := countedClients(t, 1)[0]
		lease := c.lock(t)
		<-time.After(periods * countedTimeout)
		expectAbout(t, "heartbeats per session timeout", float64(c.proxy.Count(fault.Multi))/periods, beatsPerT)
		expectAbout(t, "probes per session timeout", float64(c.proxy.Count(fault.Exists)-1)/periods, probesPerT) // the own znode is watched
		if n := c.proxy.Count(fault.Sync); n != 0 {
			t.Errorf("%d syncs", n)
		}
		expectAbout(t, "pings per session timeout", float64(c.proxy.Count(fault.Ping))/periods, pingsPerT)
		must.OK(t, lease.Release(t.Context()))
	})
}

func TestBytesOfAListedName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lease := countedClients(t, 1)[0].lock(t)
		name := lease.Node()[len("/counted/lock/"):]
		if got := len(name) + 4; got != bytesPerListedName { // the length in front of it
			t.Errorf("the name %s takes %d bytes in a listing, want %d", name, got, bytesPerListedName)
		}
		must.OK(t, lease.Release(t.Context()))
	})
}

// A kindsRequests is what a lock of a kind asks of the server: the first time, and the next.
type kindsRequests struct {
	dirs    []string // below the path, that are there
	trips   [2]int64 // round trips that a Lock waits for
	sent    [2][]fault.Op
	refused [2][]fault.Op // a try while another client has the lock
}

func requestsOfKinds() map[string]kindsRequests {
	const create, list, listAll, remove, sync, txn = fault.Create, fault.GetChildren, fault.MultiRead, fault.Delete, fault.Sync, fault.Multi
	both := func(ops ...fault.Op) [2][]fault.Op { return [2][]fault.Op{ops, ops} }
	queued := kindsRequests{[]string{""}, [2]int64{1, 1}, both(create, list, remove), both(list, sync, list)}
	return map[string]kindsRequests{
		"mutex": queued, "local": queued, "read side": queued, "write side": queued,
		"downgrade": {[]string{""}, [2]int64{3, 3}, both(create, list, create, list, remove, remove), both(list, sync, list)},
		"semaphore mutex": { // the next time it takes the lease without a place in the queue
			[]string{"/locks", "/leases"},
			[2]int64{2, 1},
			[2][]fault.Op{{create, list, create, listAll, remove, remove}, {create, listAll, remove}},
			both(list, list),
		},
		"unfair mutex": {[]string{""}, [2]int64{1, 1}, both(txn, txn), [2][]fault.Op{{txn, fault.Exists}, {txn}}},
		"multi":        {[]string{"/a", "/b", "/c"}, [2]int64{1, 1}, both(txn, listAll, txn), both(txn, listAll, txn)},
	}
}

// TestRequestsOfEachKind counts what locks ask of the server, and how often a Lock waits for that.
func TestRequestsOfEachKind(t *testing.T) {
	t.Parallel()
	downgrades := kind{name: "downgrade", rival: writeSideAt, lock: func(t testing.TB, c *framework.Client, path string, _ ...lock.Option) lock.Locker {
		return downgradeAt(t, c, path)
	}}
	eachKindAndEnv(t, append(slices.Clone(kinds), downgrades), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		const roundTrip = 10 * time.Millisecond
		want := requestsOfKinds()[k.name]
		other := env.Client(t)
		for _, dir := range want.dirs {
			createDirs(t, other, path+dir)
		}
		mustRelease(t, mustLock(t, k.lock(t, other, path))) // makes the epoch of an unfair mutex
		c, route := onRoute(t, env)
		l := k.lock(t, c, path)
		for i, trips := range want.trips {
			route.SetLatency(roundTrip)
			start := time.Now()
			lease := mustLock(t, l)
			if got := int64(time.Since(start) / roundTrip); got != trips {
				t.Errorf("Lock %d took %d round trips, want %d", i+1, got, trips)
			}
			mustRelease(t, lease)
			recipetest.MustHaveSent(t, fmt.Sprint("Lock and Release ", i+1), route, path, want.sent[i]...)
		}
		held := mustLock(t, k.rivalOf(t, other, path))
		env.Quiesce()
		for i, ops := range want.refused {
			mustRefuse(t, l)
			if k.name == "semaphore mutex" && route.Count(fault.Multi) == 0 { // it is about no path of the lock's
				t.Error("no transaction between the listings of a refused TryLock")
			}
			recipetest.MustHaveSent(t, fmt.Sprint("refused TryLock ", i+1), route, path, ops...)
		}
		mustRelease(t, held)
	}, zkenv.Only("on a busy machine a hold lasts 50 ms, and looks at its znode", zkenv.Embedded, zkenv.EmbeddedEnsemble))
}

// TestUnfairMutexAsksNothingOfItsOwnHolder: a call waits for another one of its client without a request.
func TestUnfairMutexAsksNothingOfItsOwnHolder(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, route := onRoute(t, env)
		m := newUnfairMutex(t, c, "/unfair/own")
		lease := mustTry(t, m)
		route.ResetRequests()
		mustRefuse(t, m)
		wantErr(t, "Lock", errOf(m.Lock(recipetest.Within(t, 20*time.Millisecond))), context.DeadlineExceeded) // the own znode's watch is read later
		recipetest.MustHaveSent(t, "TryLock and Lock", route, "/unfair")
		mustRelease(t, lease)
	}, zkenv.Only("on a busy machine a hold lasts 50 ms, and looks at its znode", zkenv.Embedded, zkenv.EmbeddedEnsemble))
}

// countListings counts the listings of the directory from now on.
func countListings(srv *zkserver.Server, path string) (count func() int) {
	handle := srv.Rules().Add(fault.Rule{Op: fault.GetChildren, Path: path, Action: fault.Pass, Times: fault.Forever})
	return handle.Hits
}

// TestAReaderDoesNotWaitForOthersCalls has an ACL provider hold up the creations of four readers,
// which would list along.
func TestAReaderDoesNotWaitForOthersCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var heldUp atomic.Int32 // how many of the next calls are held up
		goOn := make(chan struct{})
		provider := func(string) []acl.Entry {
			if heldUp.Add(-1) >= 0 {
				<-goOn
			}
			return nil
		}
		c := virtualClient(t, virtualServer(t), framework.WithACLProvider(provider))
		read := newReadWrite(t, c, "/listings/provider").Read()
		mustRelease(t, mustLock(t, read))
		heldUp.Store(alongAtOnce)
		var readers []<-chan result
		for range alongAtOnce {
			readers = append(readers, lockLater(t.Context(), read))
		}
		synctest.Wait()
		mustRelease(t, mustLock(t, read))
		if heldUp.Load() >= 0 {
			t.Error("no creation was held up")
		}
		close(goOn)
		mustReleaseEach(t, readers...)
	})
}

// TestManyWaitersShareListings has a thousand come at once to a lock that is held.
func TestManyWaitersShareListings(t *testing.T) {
	const path, waiters, most = "/listings/thousand", 1000, 20
	synctest.Test(t, func(t *testing.T) {
		srv := virtualServer(t)
		held := mustLock(t, newMutex(t, virtualClient(t, srv), path))
		m := newMutex(t, virtualClient(t, srv), path)
		lists := countListings(srv, path)
		together := srv.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.HoldReply})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				if _, err := m.Lock(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("%v, want the end of ctx", err)
				}
			})
		}
		synctest.Wait() // all have sent their creates: how the goroutines were scheduled counts no longer
		together.Release()
		synctest.Wait()
		if n := len(znodesBelow(srv, path)); n != waiters+1 {
			t.Errorf("%d znodes, want the holder's and %d", n, waiters)
		}
		if n := lists(); n > most {
			t.Errorf("%d waiters took %d listings, want at most %d", waiters, n, most)
		}
		cancel()
		wg.Wait()
		mustRelease(t, held)
		synctest.Wait()
		mustRelease(t, mustTry(t, m)) // who has withdrawn is in no client's way
	})
}

// TestSharedListingUnderFaults starts several attempts at once, so that some share a listing. One
// of the requests has a fault, and some of the attempts may withdraw meanwhile.
func TestSharedListingUnderFaults(t *testing.T) {
	t.Parallel()
	const path, attempts = "/listings/faults", 12
	for name, rule := range map[string]fault.Rule{
		"the creations are held up":                  {Op: fault.Create, Path: path + "/*", Action: fault.HoldReply},
		"the first listing is held up":               {Op: fault.GetChildren, Path: path, Action: fault.HoldReply},
		"a shared listing is held up":                {Op: fault.GetChildren, Path: path, Action: fault.HoldReply},
		"the connection breaks at the first listing": {Op: fault.GetChildren, Path: path, Action: fault.CutBefore},
		"the connection breaks at a shared listing":  {Op: fault.GetChildren, Path: path, Action: fault.CutBefore},
		"the reply to a shared listing is lost":      {Op: fault.GetChildren, Path: path, Action: fault.DropReply},
		"the session ends at a shared listing":       {Op: fault.GetChildren, Path: path, Action: fault.HoldReply},
		"the connection breaks at a creation":        {Op: fault.Create, Path: path + "/*", Skip: 6, Action: fault.CutBefore},
	} {
		for _, withdrawn := range []int{0, 1, 7, attempts - 1} {
			t.Run(fmt.Sprintf("%s, %d give up", name, withdrawn), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := virtualServer(t, zkserver.WithReapInterval(time.Hour))
					c := virtualClient(t, srv)
					m := newMutex(t, c, path)
					mustRelease(t, mustLock(t, m))
					var holder *lock.Lease // of another client, if the session is to end before a grant
					if strings.HasPrefix(name, "the session ends") {
						holder = mustLock(t, newMutex(t, virtualClient(t, srv), path))
					}
					if strings.Contains(name, "a shared listing") {
						listAlongSlowly(srv, path)
					}
					held := srv.Rules().Add(rule)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var wanted []<-chan result
					for i := range attempts {
						if i < withdrawn {
							go func() {
								if lease, err := m.Lock(ctx); err == nil {
									_ = lease.Release(t.Context())
								}
							}()
						} else {
							wanted = append(wanted, lockLater(t.Context(), m))
						}
						if i == alongAtOnce-1 {
							synctest.Wait()
						}
					}
					<-time.After(2 * alongDelay)
					synctest.Wait()
					if held.Hits() == 0 {
						t.Error("no request was met")
					}
					cancel()
					synctest.Wait()
					if holder != nil {
						must.OK(t, srv.Expire(c.Session().ID))
					}
					held.Release()
					if holder != nil {
						synctest.Wait()
						mustRelease(t, holder)
					}
					mustReleaseEach(t, wanted...)
					mustLeaveNothing(t, srv, path)
				})
			})
		}
	}
}

// alongAtOnce is how many attempts of a session list along with their creations at one time.
const alongAtOnce = 4

const alongDelay = 10 * time.Millisecond

// listAlongSlowly delays the listings along with the first creations. If other attempts come
// meanwhile, these listings don't show their znodes, so they share a later one.
func listAlongSlowly(srv *zkserver.Server, path string) {
	srv.Rules().Add(fault.Rule{
		Op: fault.GetChildren, Path: path, Action: fault.DelayReply, Delay: alongDelay, Times: alongAtOnce,
	})
}
