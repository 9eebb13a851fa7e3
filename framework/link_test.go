package framework_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

const (
	kilo = 1000    // bytes, as links are measured
	mega = 1000000 // bytes
)

// A link carries the bytes of a client's connections in virtual time, those of each connection at its
// rates. What a server sends waits for the link without bound, so the peak is what the server had to keep.
type link struct {
	up, down int           // bytes a second to the server, and from it; 0 is without limit
	buffer   int           // bytes that a connection takes and that the link has still to carry
	trip     time.Duration // one way
	slower   atomic.Int64  // what down has become; 0 if it is as it was

	mu    sync.Mutex
	addr  string // of the latest server
	peak  int    // of the bytes of a connection that were sent by the server and had not arrived
	works sync.WaitGroup
	conns []net.Conn
}

// over has a client connect to srv over the link, which ends with the test.
func (l *link) over(t testing.TB, srv *zkserver.Server) framework.Option {
	t.Helper()
	t.Cleanup(l.close)
	return framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		server, err := srv.Dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		client, near := net.Pipe()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns, l.addr = append(l.conns, near, server), addr
		const unbounded = 1 << 30
		l.works.Go(func() {
			newLane(near, server, l.upRate, l.buffer+l.underWay(), l.trip).run(func(int) {})
		})
		l.works.Go(func() {
			newLane(server, near, l.downRate, unbounded, l.trip).run(func(waiting int) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.peak = max(l.peak, waiting)
			})
		})
		return client, nil
	})
}

// slowDown changes the rate from the server.
func (l *link) slowDown(rate int) { l.slower.Store(int64(rate)) }

func (l *link) upRate() int { return l.up }

func (l *link) downRate() int {
	if slower := l.slower.Load(); slower > 0 {
		return int(slower)
	}
	return l.down
}

// underWay returns how many bytes to the server the link itself holds.
func (l *link) underWay() int {
	if l.up == 0 {
		return mega
	}
	return 1 + int(float64(l.up)*l.trip.Seconds())
}

// kept returns the most bytes that the server has had to keep for a connection.
func (l *link) kept() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peak
}

// server returns the address of the server that was connected to last.
func (l *link) server() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.addr
}

func (l *link) close() {
	l.mu.Lock()
	for _, c := range l.conns {
		_ = c.Close() // its peer may have closed it
	}
	l.mu.Unlock()
	l.works.Wait()
}

// A lane is one direction of a connection over a link.
type lane struct {
	from, to net.Conn
	rate     func() int
	room     int // bytes that it takes in; it then waits until some have left
	trip     time.Duration

	mu      sync.Mutex
	changed *sync.Cond
	queue   []shipment
	waiting int  // bytes in the queue
	ended   bool // nothing more comes
}

// A shipment is what a lane has read at once.
type shipment struct {
	bytes []byte
	due   time.Time // when it arrives, if nothing is ahead of it
}

func newLane(from, to net.Conn, rate func() int, room int, trip time.Duration) *lane {
	ln := &lane{from: from, to: to, rate: rate, room: room, trip: trip}
	ln.changed = sync.NewCond(&ln.mu)
	return ln
}

// run carries bytes until from has ended, and then ends to. It tells note how many wait.
func (ln *lane) run(note func(waiting int)) {
	var carrier sync.WaitGroup
	carrier.Go(ln.carry)
	for {
		piece := make([]byte, 16<<10)
		n, err := ln.from.Read(piece)
		waiting := ln.put(piece[:n], err != nil)
		if note(waiting); err != nil {
			break
		}
	}
	carrier.Wait()
}

// put adds what was read, once there is room.
func (ln *lane) put(bytes []byte, last bool) (waiting int) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	for ln.waiting >= ln.room && !last {
		ln.changed.Wait()
	}
	if len(bytes) > 0 {
		ln.queue = append(ln.queue, shipment{bytes, time.Now().Add(ln.trip)})
		ln.waiting += len(bytes)
	}
	ln.ended = ln.ended || last
	ln.changed.Broadcast()
	return ln.waiting
}

// take returns what has waited longest, or false at the end.
func (ln *lane) take() (shipment, bool) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	for len(ln.queue) == 0 && !ln.ended {
		ln.changed.Wait()
	}
	if len(ln.queue) == 0 {
		return shipment{}, false
	}
	first := ln.queue[0]
	ln.queue[0] = shipment{}
	ln.queue = ln.queue[1:]
	return first, true
}

func (ln *lane) left(n int) {
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.waiting -= n
	ln.changed.Broadcast()
}

// carry delivers what waits, as fast as the rate allows.
func (ln *lane) carry() {
	defer func() { _ = ln.to.Close() }() // it may have ended
	var idle time.Time                   // when the lane has delivered everything
	gone := false
	for s, ok := ln.take(); ok; s, ok = ln.take() {
		for bytes := s.bytes; len(bytes) > 0; {
			piece := bytes[:min(len(bytes), ln.pieceSize())]
			bytes = bytes[len(piece):]
			if !gone {
				idle = ln.await(s.due, idle, len(piece))
				_, err := ln.to.Write(piece)
				gone = err != nil
			}
			ln.left(len(piece))
		}
	}
}

// pieceSize is what arrives at once: at least a packet, and what a millisecond carries.
func (ln *lane) pieceSize() int { return max(1460, ln.rate()/1000) }

// await waits until n bytes have been carried, and returns when that was.
func (ln *lane) await(due, idle time.Time, n int) time.Time {
	if now := time.Now(); due.Before(now) {
		due = now
	}
	if idle.Before(due) {
		idle = due
	}
	if rate := ln.rate(); rate > 0 {
		idle = idle.Add(time.Duration(n) * time.Second / time.Duration(rate))
	}
	if wait := time.Until(idle); wait > 0 {
		<-time.After(wait)
	}
	return idle
}
