package zkproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/internal/gate"
)

// A Proxy carries connections from clients to one ZooKeeper server. [Start] and
// [Run] make one that clients reach over TCP, [StartPipe] and [RunPipe] one within
// the process.
type Proxy struct {
	transport transport          // immutable
	listener  *net.TCPListener   // immutable; nil where clients come by Dial alone
	ctx       context.Context    // of everything the proxy runs; ended by Close
	cancel    context.CancelFunc // immutable

	rules fault.Rules
	requestLog

	toServer  *gate.Gate // shut by Blackhole
	toClient  *gate.Gate // shut by Blackhole
	admission *gate.Gate // shut by Hang
	refusing  atomic.Bool
	latency   atomic.Int64 // added latency of each direction, in nanoseconds
	bandwidth atomic.Int64 // of each direction of a connection, in bytes per second; 0 for no limit

	mu        sync.Mutex         // guards following
	links     map[*link]struct{} // the connections, until they have ended
	closed    bool               // no link is added any more
	acceptErr error              // what ended the accept loop, unless Close did

	running sync.WaitGroup // the accept loop and the links
}

// Start starts a proxy on a free port of 127.0.0.1, in front of the server at
// upstream, a host:port. It returns at once: the server is first dialled when a
// client speaks, so it may also be started later, or stopped and started again.
// The caller must Close the proxy.
func Start(upstream string) (*Proxy, error) {
	if _, port, err := net.SplitHostPort(upstream); err != nil || port == "" {
		return nil, fmt.Errorf("zkproxy: upstream %q: must be host:port", upstream)
	}
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("zkproxy: %w", err)
	}
	p := newProxy(tcp(upstream))
	p.listener = listener
	p.running.Go(p.acceptLoop)
	return p, nil
}

func newProxy(tr transport) *Proxy {
	ctx, cancel := context.WithCancel(context.Background())
	return &Proxy{
		transport: tr,
		ctx:       ctx,
		cancel:    cancel,
		toServer:  gate.New(),
		toClient:  gate.New(),
		admission: gate.New(),
		links:     make(map[*link]struct{}),
	}
}

// Run is [Start] for a test: it fails the test at once if the proxy can't be started,
// and closes the proxy when the test has ended.
func Run(tb testing.TB, upstream string) *Proxy {
	tb.Helper()
	p, err := Start(upstream)
	if err != nil {
		tb.Fatal(err)
	}
	closeAfter(tb, p)
	return p
}

func closeAfter(tb testing.TB, p *Proxy) {
	tb.Helper()
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
}

// Addr returns the host:port that clients are to connect to. That of a proxy
// without a port means something to its Dial alone, and needs no resolver.
func (p *Proxy) Addr() string {
	if p.listener == nil {
		return pipeAddr
	}
	return p.listener.Addr().String()
}

// Rules returns the set of rules on single frames, in force on all connections. A
// frame is matched when the proxy has received it.
func (p *Proxy) Rules() *fault.Rules { return &p.rules }

// Sessions returns the sessions of the connections that stand now, in no order.
func (p *Proxy) Sessions() []Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sessions []Session
	for l := range p.links {
		if s := l.session.Load(); s != nil {
			sessions = append(sessions, Session{ID: s.ID, Password: bytes.Clone(s.Password), Timeout: s.Timeout})
		}
	}
	return sessions
}

// Close cuts all connections, frees the port, and returns when all goroutines of the
// proxy have ended. It returns the error that has kept the proxy from accepting
// connections before, if there was one. Further calls return the same.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	var closeErr error
	if p.listener != nil {
		closeErr = p.listener.Close()
	}
	p.Cut()
	p.running.Wait()

	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(closeErr, net.ErrClosed) {
		closeErr = nil
	}
	return errors.Join(p.acceptErr, closeErr)
}

// acceptLoop is started by Start, ended by Close, which waits for it.
func (p *Proxy) acceptLoop() {
	for {
		conn, err := p.listener.AcceptTCP()
		if err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			if !p.closed {
				p.acceptErr = fmt.Errorf("zkproxy: %w", err)
			}
			return
		}
		if p.refusing.Load() {
			refuse(conn)
			continue
		}
		p.serve(conn)
	}
}

// serve starts a link for conn. It reports false if the proxy is being closed.
func (p *Proxy) serve(conn net.Conn) bool {
	l := newLink(p, conn)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		l.cut()
		return false
	}
	p.links[l] = struct{}{}
	p.running.Go(func() {
		l.run()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	})
	return true
}

// halfTrip returns the latency that is added to each direction.
func (p *Proxy) halfTrip() time.Duration { return time.Duration(p.latency.Load()) }
