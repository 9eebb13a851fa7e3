package chaos_test

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/history"
)

// A store is a register per lock, outside ZooKeeper and outside the workers. It refuses
// what comes with a smaller fence than it has seen.
type store struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu      sync.Mutex // guards following
	fences  map[string]int64
	version map[string]int64 // how many writes were accepted
}

func newStore(t testing.TB) *store {
	t.Helper()
	listener := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	s := &store{listener: listener, fences: make(map[string]int64), version: make(map[string]int64)}
	s.serving.Go(s.acceptLoop)
	t.Cleanup(func() {
		_ = listener.Close()
		s.serving.Wait() // the workers are gone by then, and with them their connections
	})
	return s
}

func (s *store) acceptLoop() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.serving.Go(func() { s.serve(conn) })
	}
}

func (s *store) serve(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewReader(conn); ; {
		var lock string
		var fence int64
		if _, err := fmt.Fscanf(lines, "%s %d\n", &lock, &fence); err != nil {
			return
		}
		version, outcome := s.write(lock, fence)
		if _, err := fmt.Fprintf(conn, "%d %s\n", version, outcome); err != nil {
			return
		}
	}
}

func (s *store) write(lock string, fence int64) (version int64, outcome history.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fence < s.fences[lock] {
		return 0, history.Refused
	}
	s.fences[lock] = fence
	s.version[lock]++
	return s.version[lock], history.Accepted
}

// fence returns the greatest fence that has written under a lock.
func (s *store) fence(lock string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fences[lock]
}

// A storeConn is a worker's way to the store. One goroutine uses it.
type storeConn struct {
	conn  net.Conn
	lines *bufio.Reader
}

func dialStore(addr string) (*storeConn, error) {
	conn, err := net.Dial("tcp4", addr)
	if err != nil {
		return nil, err
	}
	return &storeConn{conn, bufio.NewReader(conn)}, nil
}

// write returns Unknown only when the run is over.
func (c *storeConn) write(lock string, fence int64) (version int64, outcome history.Outcome) {
	if _, err := fmt.Fprintf(c.conn, "%s %d\n", lock, fence); err != nil {
		return 0, history.Unknown
	}
	if _, err := fmt.Fscanf(c.lines, "%d %s\n", &version, &outcome); err != nil {
		return 0, history.Unknown
	}
	return version, outcome
}
