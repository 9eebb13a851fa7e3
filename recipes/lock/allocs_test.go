package lock_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/recipes/lock"
)

// allocsPerLock is how often the process allocates memory for one Lock and Release of a free mutex: the
// client without a server. It is 55 at rest; the rest is for heartbeats, and for -race.
const allocsPerLock = 60

// TestAllocationsOfAFreeLock counts the client's allocations at a server that allocates nothing itself.
func TestAllocationsOfAFreeLock(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	m := newMutex(t, cannedClient(t), "/canned/lock")
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // as most callers have
	defer cancel()
	allocs := testing.AllocsPerRun(1000, func() {
		lease := must.Get(m.Lock(ctx))(t)
		must.OK(t, lease.Release(ctx))
	})
	t.Logf("%v allocations per lock", allocs)
	if allocs > allocsPerLock {
		t.Errorf("%v allocations per lock, want at most %v", allocs, allocsPerLock)
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

// cannedClient returns a client of a cannedConn.
func cannedClient(t testing.TB) *framework.Client {
	t.Helper()
	return newClient(t, "canned:1", framework.WithDialer(func(context.Context, string, string) (net.Conn, error) {
		c := new(cannedConn)
		c.written.L = &c.mu
		return c, nil
	}))
}

// A cannedConn is a connection to a server of one contender. It replies to each request at once, and
// allocates nothing for that once its buffers have grown.
type cannedConn struct {
	net.Conn // nil: what the client does not use

	mu      sync.Mutex // guards following
	written sync.Cond
	replies []byte // that were not read yet
	read    int    // of replies
	path    []byte // of the znode that was created last
	zxid    uint64
	greeted bool
	closed  bool
}

func (c *cannedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	for rest := p; len(rest) > 0; {
		end := proto.LengthSize + int(binary.BigEndian.Uint32(rest))
		c.receive(rest[proto.LengthSize:end])
		rest = rest[end:]
	}
	c.written.Signal()
	return len(p), nil
}

// receive replies to one frame.
func (c *cannedConn) receive(frame []byte) {
	start := len(c.replies)
	c.replies = append(c.replies, 0, 0, 0, 0)
	if c.greeted {
		c.reply(frame)
	} else {
		c.greeted = true
		c.replies = append(c.replies, (proto.ConnectReply{Timeout: 60_000, Session: 1, Password: make([]byte, proto.PasswordSize)}).Frame()[proto.LengthSize:]...)
	}
	binary.BigEndian.PutUint32(c.replies[start:], uint32(len(c.replies)-start-proto.LengthSize))
}

// reply appends the reply to the request.
func (c *cannedConn) reply(request []byte) {
	d := proto.NewDecoder(request)
	xid, op := d.Int32(), proto.Opcode(d.Int32())
	if op != proto.OpGetChildren2 {
		c.zxid++
	}
	c.replies = binary.BigEndian.AppendUint32(c.replies, uint32(xid))
	c.replies = binary.BigEndian.AppendUint64(c.replies, c.zxid)
	c.replies = binary.BigEndian.AppendUint32(c.replies, 0)
	switch op {
	case proto.OpMulti: // a heartbeat
		c.replies = append(c.replies, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff)
	case proto.OpCreate2, proto.OpCreateContainer:
		c.path = append(append(c.path[:0], d.Text()...), "0000000001"...)
		c.appendText(c.path)
		c.appendStat()
	case proto.OpGetChildren2:
		dir := d.Text()
		c.replies = binary.BigEndian.AppendUint32(c.replies, 1)
		c.appendText(c.path[len(dir)+1:])
		c.appendStat()
	}
}

func (c *cannedConn) appendText(s []byte) {
	c.replies = append(binary.BigEndian.AppendUint32(c.replies, uint32(len(s))), s...)
}

func (c *cannedConn) appendStat() {
	c.replies = binary.BigEndian.AppendUint64(c.replies, c.zxid)
	for range proto.StatSize - 8 {
		c.replies = append(c.replies, 0)
	}
}

func (c *cannedConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.read == len(c.replies) {
		if c.closed {
			return 0, io.EOF
		}
		c.written.Wait()
	}
	n := copy(p, c.replies[c.read:])
	if c.read += n; c.read == len(c.replies) {
		c.replies, c.read = c.replies[:0], 0
	}
	return n, nil
}

func (c *cannedConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.written.Broadcast()
	return nil
}

func (c *cannedConn) SetDeadline(time.Time) error      { return nil }
func (c *cannedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *cannedConn) SetWriteDeadline(time.Time) error { return nil }
func (c *cannedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *cannedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
