package hostile_test

import (
	"math/rand/v2"
	"sync"
	"time"
)

// A script is what all choices of a run are made of. Its end is a server that behaves well, and a
// client that does nothing more. Its methods may be called concurrently.
type script struct {
	mu   sync.Mutex // guards following
	rest []byte
}

// fromSeed returns a random script.
func fromSeed(seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 28))
	b := make([]byte, 50+rng.IntN(8000))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	// How many frames of 256 are changed: none, few or many.
	b[0] = []byte{0, 2, 8, 32, 128}[rng.IntN(5)]
	return b
}

// next returns the next byte; ok is false at the end.
func (s *script) next() (b byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rest) == 0 {
		return 0, false
	}
	b, s.rest = s.rest[0], s.rest[1:]
	return b, true
}

// below returns a number from 0 to n-1; 0 at the end.
func (s *script) below(n int) int {
	high, _ := s.next()
	if n <= 256 {
		return int(high) % n
	}
	low, _ := s.next()
	return (int(high)<<8 | int(low)) % n
}

// upTo returns a duration of at most d.
func (s *script) upTo(d time.Duration) time.Duration {
	return d * time.Duration(s.below(256)) / 255
}

func pick[E any](s *script, list []E) E { return list[s.below(len(list))] }
