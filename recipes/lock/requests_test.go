package lock_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
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
	lease, err := c.mutex.Lock(lock.ContextWithOwner(t.Context(), lock.NewOwner("")))
	if err != nil {
		t.Error(err)
	}
	return lease
}

func (c *countedClient) writes() float64 { return float64(c.proxy.Count(fault.Create, fault.Delete)) }
func (c *countedClient) reads() float64 {
	return float64(c.proxy.Count(fault.GetChildren, fault.GetData, fault.Exists))
}

// requests returns how many requests there were, without the client's own.
func (c *countedClient) requests() float64 {
	return c.writes() + c.reads() + float64(c.proxy.Count(fault.Multi, fault.MultiRead))
}

// countedClients returns clients of the lock /counted/lock, whose directory exists.
func countedClients(t *testing.T, n int, opts ...zkserver.Option) []*countedClient {
	t.Helper()
	server := zkserver.Run(t, opts...)
	var all []*countedClient
	for range n {
		proxy := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) {
			return server.Dial(ctx, "tcp", server.Addr())
		})
		proxy.SetLatency(countedRoundTrip)
		c := must.Get(framework.NewClient(server.Addr(), framework.WithDialer(proxy.Dial), framework.WithSessionTimeout(countedTimeout)))(t)
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
			must.OK(t, c.lock(t).Release(t.Context()))
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
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
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

func TestRequestsOfAMulti(t *testing.T) {
	t.Parallel()
	const members, rounds = 10, 100
	for name, at := range map[string]struct {
		opts []zkserver.Option
		want float64
	}{
		"one request lists all":    {nil, 3},
		"a server before 3.6":      {[]zkserver.Option{zkserver.WithVersion("3.5.10")}, 2 + members},
		"Keeper without multiRead": {[]zkserver.Option{zkserver.WithoutOpcodes(zkserver.KeeperLacks()...), zkserver.WithoutReplyToUnknown()}, 2 + members},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := countedClients(t, 1, at.opts...)[0]
				locks := make([]lock.Locker, members)
				for i := range locks {
					locks[i] = must.Get(lock.NewMutex(c.client, fmt.Sprintf("/counted/multi-%d", i)))(t)
				}
				multi := must.Get(lock.NewMulti(locks...))(t)
				for range 2 { // the first creates the directories, and finds out what the server knows
					must.OK(t, must.Get(multi.Lock(t.Context()))(t).Release(t.Context()))
				}
				c.proxy.ResetRequests()
				for range rounds {
					must.OK(t, must.Get(multi.Lock(t.Context()))(t).Release(t.Context()))
				}
				if got := c.requests() / rounds; got != at.want {
					t.Errorf("%v requests for a multi-lock of %d, want %v", got, members, at.want)
				}
			})
		})
	}
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
