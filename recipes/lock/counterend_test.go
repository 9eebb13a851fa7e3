package lock_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// nearTheEnd returns a server whose directory's counter is as far from its end as before says.
func nearTheEnd(t *testing.T, path string, before int32, opts ...zkserver.Option) *zkserver.Server {
	t.Helper()
	srv := virtualServer(t, opts...)
	operator := virtualClient(t, srv)
	must.Get(operator.Create(t.Context(), path, nil))(t)
	// A child keeps the directory, and with that the counter.
	must.Get(operator.Create(t.Context(), path+"/keep", nil))(t)
	must.OK(t, srv.SetNextSequence(path, math.MaxInt32-before))
	return srv
}

// TestSidesAtTheCounterEnd has readers and writers with one number, which does not make them one
// owner's.
func TestSidesAtTheCounterEnd(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, first, second, third *lock.RWMutex){
		"a reader waits for a writer": func(t *testing.T, first, second, _ *lock.RWMutex) {
			writer := mustLock(t, first.Write())
			reader := lockLater(t.Context(), second.Read())
			synctest.Wait()
			mustWait(t, "a reader beside a writer", reader)
			mustRelease(t, writer)
			mustReleaseEach(t, reader)
		},
		"a writer waits for a reader": func(t *testing.T, first, second, _ *lock.RWMutex) {
			reader := mustLock(t, first.Read())
			writer := lockLater(t.Context(), second.Write())
			synctest.Wait()
			mustWait(t, "a writer beside a reader", writer)
			mustRelease(t, reader)
			mustReleaseEach(t, writer)
		},
		"readers share, and a later one waits for the writer between": func(t *testing.T, first, second, third *lock.RWMutex) {
			reader, another := mustLock(t, first.Read()), mustLock(t, second.Read())
			writer := lockLater(t.Context(), third.Write())
			synctest.Wait()
			last := lockLater(lock.ContextWithOwner(t.Context(), lock.NewOwner("last")), second.Read())
			synctest.Wait()
			mustRelease(t, reader)
			synctest.Wait()
			mustWait(t, "granted too early", writer, last)
			mustRelease(t, another)
			lease := granted(t, writer, "the writer")
			mustWait(t, "a reader beside a writer", last)
			mustRelease(t, lease)
			mustReleaseEach(t, last)
		},
		"a try is refused": func(t *testing.T, first, second, _ *lock.RWMutex) {
			writer := mustLock(t, first.Write())
			mustRefuse(t, second.Read())
			mustRefuse(t, second.Write())
			mustRelease(t, writer)
			mustRelease(t, mustTry(t, second.Read()))
		},
		"the owner of the write side does not get the read side": func(t *testing.T, first, second, _ *lock.RWMutex) {
			owner := lock.ContextWithOwner(t.Context(), lock.NewOwner("owner"))
			writer := mustLockAs(owner, t, first.Write())
			for name, get := range map[string]func(context.Context) (*lock.Lease, error){
				"Lock": first.Read().Lock, "TryLock": first.Read().TryLock,
			} {
				if _, err := get(owner); !errors.Is(err, lock.ErrCounterEnd) {
					t.Errorf("%s: %v, want ErrCounterEnd", name, err)
				}
			}
			if writer.Err() != nil {
				t.Errorf("the write lease: %v", writer.Err())
			}
			mustRelease(t, writer)
			mustRelease(t, mustLock(t, second.Read()))
		},
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const path = "/counter-end-sides"
				srv := nearTheEnd(t, path, 0)
				var locks [3]*lock.RWMutex
				for i := range locks {
					locks[i] = newReadWrite(t, virtualClient(t, srv), path)
				}
				body(t, locks[0], locks[1], locks[2])
				if left := znodesBelow(srv, path); len(left) != 1 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

// TestContendersAtTheCounterEnd has eight clients contend for a lock whose znodes get the last
// number and negative ones in turn. Some of the attempts withdraw.
func TestContendersAtTheCounterEnd(t *testing.T) {
	t.Parallel()
	const path, clients, rounds = "/counter-end", 8, 10
	for _, k := range kindsThat(inQueue) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				// Creations are outstanding together, so some get negative numbers.
				srv := nearTheEnd(t, path, 5, zkserver.WithCommitTime(time.Millisecond))
				var negative atomic.Bool
				inside := make(chan struct{}, 1)
				var wg sync.WaitGroup
				for i := range clients {
					l := k.lock(t, virtualClient(t, srv), path)
					r := rand.New(rand.NewPCG(1, uint64(i)))
					wg.Go(func() {
						for range rounds {
							contendOrWithdraw(t, l, r, inside, &negative)
						}
					})
				}
				wg.Wait()
				if !negative.Load() {
					t.Error("no contender had a negative number")
				}
				<-time.After(time.Minute) // virtual: background deletions have been repeated
				if left := znodesBelow(srv, path); len(left) != 1 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

// contendOrWithdraw holds the lock for a moment, or withdraws before that.
func contendOrWithdraw(t *testing.T, l lock.Locker, r *rand.Rand, inside chan struct{}, negative *atomic.Bool) {
	t.Helper()
	patience := time.Hour
	hasty := r.IntN(3) == 0
	if hasty {
		patience = time.Duration(1+r.IntN(8)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lease, err := l.Lock(ctx)
	if hasty && errors.Is(err, context.DeadlineExceeded) {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	if strings.Contains(lease.Node(), "-2147") {
		negative.Store(true)
	}
	select {
	case inside <- struct{}{}:
		<-time.After(time.Duration(r.IntN(3)) * time.Millisecond) // virtual: the others queue up
		<-inside
	default:
		t.Error("two holders at once")
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
