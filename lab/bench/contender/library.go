package contender

import (
	"context"
	"fmt"
	"time"
)

// A Library is an implementation of locks for Go.
type Library interface {
	Version() string

	// Connect returns a session, once the server has confirmed it.
	Connect(ctx context.Context, server string, timeout time.Duration) (Session, error)
}

// A Session is one session with ZooKeeper, for any number of workers.
type Session interface {
	// Lock returns a lock for one worker. Which kinds there are is the library's.
	Lock(kind, path string) (Lock, error)
	Close() error
}

// A Reader is a session that reads a znode. Get returns when ctx ends.
type Reader interface {
	Session
	Get(ctx context.Context, path string) error
}

// A Lock is one worker's stake in a lock. Its methods are called by one goroutine
// at a time.
type Lock interface {
	Acquire(ctx context.Context) error
	Release(ctx context.Context) error
}

// A Refuser is a lock that can be tried.
type Refuser interface {
	// Refused tries to acquire a lock that another client holds. It is an error if it succeeds.
	Refused(ctx context.Context) error
}

// Libraries returns the libraries by the names that the benchmark has for them.
func Libraries() map[string]Library {
	return map[string]Library{"docent": docent{}, "go-zookeeper": goZookeeper{}, "wire": wire{}, "wire-pipelined": wire{}}
}

func errKind(kind string) error { return fmt.Errorf("no such kind of lock: %s", kind) }
