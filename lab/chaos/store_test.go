package chaos_test

import (
	"net"
	"net/rpc"
	"sync"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/history"
)

// A store is a register per lock, outside ZooKeeper and outside the workers. It refuses
// what comes with a smaller fence than it has seen.
type store struct {
	addr string // where workers reach it

	mu       sync.Mutex // guards following
	fences   map[string]int64
	versions map[string]int64 // how many writes were accepted
}

// A StoreWrite is a worker's request to the store, and a StoreAnswer what came of it. Package rpc takes exported types.
type (
	StoreWrite struct {
		Lock  string
		Fence int64
	}
	StoreAnswer struct {
		Version int64
		Outcome history.Outcome
	}
)

// newStore starts a store. The connections to it end with the workers.
func newStore(t testing.TB) *store {
	t.Helper()
	listener := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	s := &store{addr: listener.Addr().String(), fences: make(map[string]int64), versions: make(map[string]int64)}
	service := rpc.NewServer()
	must.OK(t, service.RegisterName("Store", s))
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { service.ServeConn(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return s
}

// Write is called by workers.
func (s *store) Write(w StoreWrite, answer *StoreAnswer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.Fence < s.fences[w.Lock] {
		answer.Outcome = history.Refused
		return nil
	}
	s.fences[w.Lock] = w.Fence
	s.versions[w.Lock]++
	*answer = StoreAnswer{s.versions[w.Lock], history.Accepted}
	return nil
}

// fence returns the greatest fence that has written under a lock.
func (s *store) fence(lock string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fences[lock]
}

// writeTo returns Unknown only when the run is over.
func writeTo(store *rpc.Client, lock string, fence int64) (version int64, outcome history.Outcome) {
	var answer StoreAnswer
	if err := store.Call("Store.Write", StoreWrite{lock, fence}, &answer); err != nil {
		return 0, history.Unknown
	}
	return answer.Version, answer.Outcome
}
