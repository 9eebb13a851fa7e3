package main

import (
	"bytes"
	"context"
	"math"
	"net"
	"os"
	"strings"
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

// The page shows what the program prints.
func TestThePageShowsTheTable(t *testing.T) {
	t.Parallel()
	page := must.Get(os.ReadFile("../sizing.md"))(t)
	var printed bytes.Buffer
	table(&printed, reference, examples())
	if !strings.Contains(string(page), "\n"+printed.String()) {
		t.Errorf("docs/sizing.md does not show what `go run ./docs/sizing` prints:\n%s", printed.String())
	}
	printed.Reset()
	heartbeats(&printed, reference)
	if !strings.Contains(string(page), "\n"+printed.String()) {
		t.Errorf("docs/sizing.md does not show what heartbeats ask:\n%s", printed.String())
	}
	for what, figure := range map[string]float64{"writes, flushed to disk": reference.writes, "reads": reference.reads} {
		if row := "| " + what + " | " + grouped(figure) + " | "; !strings.Contains(string(page), row) {
			t.Errorf("docs/sizing.md does not have the figure of the model: %s", row)
		}
	}
}

// A link is a client whose requests are counted.
type link struct {
	proxy  *zkproxy.Proxy
	client *framework.Client
	mutex  *lock.Mutex
}

// latency is the round trip of a link.
const latency = time.Millisecond

func (l *link) lock(t *testing.T) *lock.Lease {
	t.Helper()
	lease, err := l.mutex.Lock(lock.ContextWithOwner(t.Context(), lock.NewOwner("")))
	if err != nil {
		t.Error(err)
	}
	return lease
}

func (l *link) writes() float64 { return float64(l.proxy.Count(fault.Create, fault.Delete)) }
func (l *link) reads() float64 {
	return float64(l.proxy.Count(fault.GetChildren, fault.GetData, fault.Exists))
}

// links returns clients with the lock /sizing/lock, in a bubble.
func links(t *testing.T, n int) []*link {
	t.Helper()
	server := zkserver.Run(t)
	var all []*link
	for range n {
		proxy := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) {
			return server.Dial(ctx, "tcp", server.Addr())
		})
		proxy.SetLatency(latency)
		c := must.Get(framework.NewClient(server.Addr(), framework.WithDialer(proxy.Dial), framework.WithSessionTimeout(reference.timeout)))(t)
		t.Cleanup(func() { _ = c.Close() })
		mutex := must.Get(lock.NewMutex(c, "/sizing/lock"))(t)
		all = append(all, &link{proxy, c, mutex})
	}
	// The directory is made once; it is not part of what a lock costs.
	must.OK(t, all[0].lock(t).Release(t.Context()))
	for _, l := range all {
		l.proxy.ResetRequests()
	}
	return all
}

// holds fails the test unless a client sends at most what the model says, and at most one less.
func holds(t *testing.T, what string, sent, model float64) {
	t.Helper()
	if sent > model || sent < model-1 {
		t.Errorf("%s: a client sends %.2f, the model says %.2f", what, sent, model)
	}
}

func TestTheModelKnowsWhatAFreeLockCosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rounds = 100
		l := links(t, 1)[0]
		for range rounds {
			must.OK(t, l.lock(t).Release(t.Context()))
		}
		holds(t, "writes of a free lock", l.writes()/rounds, writesPerLock)
		holds(t, "reads of a free lock", l.reads()/rounds, readsPerLock)
		l.proxy.ResetRequests()
		for range rounds {
			lease := l.lock(t)
			<-time.After(2 * holdNoticed)
			must.OK(t, lease.Release(t.Context()))
		}
		holds(t, "reads of a lock that is held for a while", l.reads()/rounds, readsPerLock+readsPerHold)
	})
}

func TestTheModelKnowsWhatANewDirectoryCosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := links(t, 1)[0]
		mutex := must.Get(lock.NewMutex(l.client, "/sizing/new"))(t)
		begun := time.Now()
		lease := must.Get(mutex.Lock(t.Context()))(t)
		if took := time.Since(begun); took > 2*latency {
			t.Errorf("the lock took %v, want two round trips of %v", took, latency)
		}
		must.OK(t, lease.Release(t.Context()))
		if got, want := l.writes(), writesPerLock+writesPerName; got != want {
			t.Errorf("a lock of a new directory sends %v writes, the model says %v", got, want)
		}
		if got, want := l.reads(), readsPerLock+readsPerName; got != want {
			t.Errorf("a lock of a new directory sends %v reads, the model says %v", got, want)
		}
	})
}

func TestTheModelKnowsWhatWaitingCosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const waiters = 20
		all := links(t, waiters+1)
		first := all[0].lock(t)
		done := make(chan struct{})
		for _, l := range all[1:] {
			go func() {
				defer func() { done <- struct{}{} }()
				lease := l.lock(t)
				<-time.After(10 * time.Millisecond)
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			<-time.After(10 * time.Millisecond) // in line, one after the other
		}
		must.OK(t, first.Release(t.Context()))
		var writes, reads float64
		for range waiters {
			<-done
		}
		for _, l := range all[1:] {
			writes += l.writes()
			reads += l.reads()
		}
		holds(t, "writes of a lock that was waited for", writes/waiters, writesPerLock)
		holds(t, "reads of a lock that was waited for", reads/waiters, readsPerLock+readsPerWait)
	})
}

func TestTheModelKnowsWhatHoldingCosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := links(t, 1)[0]
		lease := l.lock(t)
		const periods = 120
		<-time.After(periods * reference.timeout)
		holds(t, "heartbeats per session timeout", float64(l.proxy.Count(fault.Multi))/periods, reference.beatsPerT())
		holds(t, "probes per session timeout", float64(l.proxy.Count(fault.Exists)-1)/periods, probesPerT) // the own znode is watched
		if n := l.proxy.Count(fault.Sync); n != 0 {
			t.Errorf("%d syncs", n)
		}
		holds(t, "pings per session timeout", float64(l.proxy.Count(fault.Ping))/periods, pingsPerT)
		must.OK(t, lease.Release(t.Context()))
	})
}

// The longest listing that a client takes is as long as the model has it.
func TestTheModelKnowsHowLongAListingIs(t *testing.T) {
	t.Parallel()
	const name = "_c_01234567-89ab-cdef-0123-456789abcdef-lock-0123456789"
	if got := len(name) + 4; got != bytesPerName {
		t.Errorf("a name takes %d bytes, the model says %d", got, bytesPerName)
	}
}

func TestDemandGrowsWithTheClients(t *testing.T) {
	t.Parallel()
	for _, load := range examples() {
		if err := load.validate(reference); err != nil && !load.idle {
			t.Errorf("%s: %v", load.name, err)
		}
		once := load.demand(reference)
		load.clients *= 2
		twice := load.demand(reference)
		if math.Abs(twice.server-2*once.server) > 1e-9 || twice.ensembles < once.ensembles {
			t.Errorf("%s: %+v for twice as many as %+v", load.name, twice, once)
		}
	}
}
