package lock_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// How often the process allocates memory for one Lock and Release of a free mutex: the client without a server. One
// is for heartbeats.
const allocsPerLock, allocsWithRace = 55 + 1, 60 + 1

// TestAllocationsOfAFreeLock counts the client's allocations: the server is another process.
func TestAllocationsOfAFreeLock(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	c := newClient(t, serverElsewhere(t))
	createDirs(t, c, "/allocations")
	m := newMutex(t, c, "/allocations")
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // as most callers have
	defer cancel()
	allocs := testing.AllocsPerRun(1000, func() {
		lease := must.Get(m.Lock(ctx))(t)
		must.OK(t, lease.Release(ctx))
	})
	t.Logf("%v allocations per lock", allocs)
	most := float64(allocsPerLock)
	if raceEnabled() {
		most = allocsWithRace
	}
	if allocs > most {
		t.Errorf("%v allocations per lock, want at most %v", allocs, most)
	}
}

// TestReentryCostsNothingMore counts the allocations of a re-entry: the lease is the only one, and an event if a
// span records the hold.
func TestReentryCostsNothingMore(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	addr, dialer := serverInProcess(t)
	clients := map[string]*framework.Client{
		"nobody listens": newClient(t, addr, dialer),
		"all is kept": newService("a", func(opts ...framework.Option) *framework.Client {
			return newClient(t, addr, append(opts, dialer)...)
		}).client,
	}
	const event = 4
	for name, c := range clients {
		most := map[string]float64{"nobody listens": 1, "all is kept": 1 + event}[name]
		m := newMutex(t, c, "/cost")
		for kind, ctx := range map[string]context.Context{
			"goroutine": t.Context(),
			"owner":     asOwner(t, "cost"),
		} {
			lease := must.Get(m.Lock(ctx))(t)
			allocs := testing.AllocsPerRun(1000, func() {
				again := must.Get(m.Lock(ctx))(t)
				must.OK(t, again.Release(ctx))
			})
			if allocs > most {
				t.Errorf("%s, by %s: %v allocations per re-entry, want %v", name, kind, allocs, most)
			}
			mustRelease(t, lease)
		}
	}
}

// TestStackOfAWaiter counts the stacks of waiters as large as they have been: no garbage collection has made them
// smaller. Each is 8 KiB, and grew to 16 KiB when an attempt's frames had Stats and connection states by value.
func TestStackOfAWaiter(t *testing.T) { //nolint:paralleltest // it counts the stacks of the process
	const waiters, most = 200, 12 << 10
	if raceEnabled() {
		t.Skip("frames are larger with -race")
	}
	addr, dialer := serverInProcess(t)
	c := newClient(t, addr, dialer)
	held := mustLock(t, newMutex(t, c, "/lock"))
	var mutexes []*lock.Mutex
	for range waiters {
		mutexes = append(mutexes, newMutex(t, c, "/lock"))
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC() // what earlier tests have left would go while the waiters come
	before := stacks()
	var waiting []<-chan result
	for _, m := range mutexes {
		waiting = append(waiting, lockLater(t.Context(), m))
	}
	awaitContenders(t, c, "/lock", waiters+1)
	mustWait(t, "all but the holder", waiting...)
	each := (stacks() - before) / waiters
	t.Logf("%d bytes of stack per waiter", each)
	if each > most {
		t.Errorf("a waiter has a stack of %d bytes, want at most %d", each, most)
	}
	mustRelease(t, held)
	mustReleaseEach(t, waiting...)
}

func stacks() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.StackInuse)
}

// raceEnabled reports whether the test was built with -race.
func raceEnabled() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// servesAlone is set in the environment of the process of [serveAlone].
const servesAlone = "LOCK_TEST_SERVES"

// serveAlone is a server in a process of its own, which ends with the standard input.
func serveAlone() {
	server, err := zkserver.Start()
	if err != nil {
		panic(err)
	}
	addr, err := server.Listen("127.0.0.1:0")
	fmt.Println(addr, err)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// serverElsewhere returns the connect string of a server whose allocations are not this process's.
func serverElsewhere(t testing.TB) (addr string) {
	t.Helper()
	server := exec.Command(os.Args[0]) //nolint:noctx // it ends with its input, after the client
	server.Env = append(os.Environ(), servesAlone+"=1")
	input, output := must.Get(server.StdinPipe())(t), must.Get(server.StdoutPipe())(t)
	must.OK(t, server.Start())
	t.Cleanup(func() { _, _ = input.Close(), server.Wait() })
	_, err := fmt.Fscan(output, &addr)
	must.OK(t, err)
	return addr
}
