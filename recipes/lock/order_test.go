package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// TestOrder has several waiters in each of three sessions.
func TestOrder(t *testing.T) {
	t.Parallel()
	const waiters = 9
	queues := map[string]string{"mutex": "", "write side": "", "semaphore mutex": "/locks"}
	ordered := kindsThat(func(k kind) bool { _, ok := queues[k.name]; return ok })
	eachKindAndEnv(t, ordered, func(t *testing.T, env *zkenv.Env, k kind, path string) {
		holder := env.Client(t)
		clients := []*framework.Client{env.Client(t), env.Client(t), holder}
		held := mustLock(t, k.lock(t, holder, path))
		queue := path + queues[k.name]
		if queue != path {
			awaitContenders(t, holder, queue, 0) // the holder of a semaphore mutex leaves the queue
		}
		ahead := len(contenders(t, holder, queue))
		grants := make(chan int, waiters)
		var wg sync.WaitGroup
		defer wg.Wait()
		for i := range waiters {
			l := k.lock(t, clients[i%len(clients)], path)
			wg.Go(func() {
				lease, err := l.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				grants <- i
				wantErr(t, "release", lease.Release(t.Context()), nil)
			})
			awaitContenders(t, holder, queue, ahead+i+1)
		}
		mustRelease(t, held)
		for want := range waiters {
			if got := must.Receive(t, grants, "the next grant"); got != want {
				t.Fatalf("grant %d went to waiter %d", want, got)
			}
		}
	})
}

// TestOperatorDeletesAWaiter deletes a waiter's znode (etcd#11456: the lowest that remains is not
// that of the one that waits).
func TestOperatorDeletesAWaiter(t *testing.T) {
	t.Parallel()
	eachKindAndEnv(t, kindsThat(withParticipants), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		operator := env.Client(t)
		held := mustLock(t, k.rivalOf(t, operator, path))
		waiter := k.lock(t, env.Client(t), path)
		done := lockLater(t.Context(), waiter)
		awaitContenders(t, operator, path, 2)
		found := participantsOf(t, waiter)
		last := found[len(found)-1]
		deleteNode(t, operator, last.Path)
		zktest.Eventually(t, generous, "the waiter queues again", func() bool {
			now := participantsOf(t, waiter)
			return len(now) == len(found) && now[len(now)-1].Sequence > last.Sequence
		})
		mustWait(t, "a second holder", done)
		mustRelease(t, held)
		mustRelease(t, granted(t, done, "the lock"))
	}, oneOfEach())
}

func TestReadWriteGrantsInTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	const path = "/rw/order"
	server := zktest.Shared(t)
	c := newClient(t, server.Addr())
	rw := newReadWrite(t, c, path)
	lease := mustLockAs(asOwner(t, "writer 1"), t, rw.Write())
	reader2 := queueUp(asOwner(t, "reader 2"), t, rw.Read(), c, path, 2)
	reader3 := queueUp(asOwner(t, "reader 3"), t, rw.Read(), c, path, 3)
	writer4 := queueUp(asOwner(t, "writer 4"), t, rw.Write(), c, path, 4)
	reader5 := queueUp(asOwner(t, "reader 5"), t, rw.Read(), c, path, 5)
	writer6 := queueUp(asOwner(t, "writer 6"), t, rw.Write(), c, path, 6)
	mustWait(t, "everybody behind a writer", reader2, reader3, writer4, reader5, writer6)

	mustRelease(t, lease)
	first, second := granted(t, reader2, "the first reader"), granted(t, reader3, "the second reader")
	mustWait(t, "a writer behind readers, and whoever is behind it", writer4, reader5, writer6)
	mustRelease(t, second)
	mustWait(t, "a writer behind a reader", writer4)
	mustRelease(t, first)

	lease = granted(t, writer4, "the writer behind the readers")
	mustWait(t, "everybody behind the second writer", reader5, writer6)
	mustRelease(t, lease)
	lease = granted(t, reader5, "the reader between writers")
	mustWait(t, "the last writer", writer6)
	mustRelease(t, lease)
	mustRelease(t, granted(t, writer6, "the last writer"))
	awaitContenders(t, c, path, 0)
}

// TestAReaderIgnoresLaterWriters: kazoo issue 649, where a reader waited for a
// writer that had come later and waited for it.
func TestAReaderIgnoresLaterWriters(t *testing.T) {
	t.Parallel()
	const path = "/rw/later-writer"
	c := newClient(t, zktest.Shared(t).Addr())
	rw := newReadWrite(t, c, path)
	held := mustLockAs(asOwner(t, "writer 1"), t, rw.Write())
	reader := queueUp(asOwner(t, "reader"), t, rw.Read(), c, path, 2)
	writer := queueUp(asOwner(t, "writer 2"), t, rw.Write(), c, path, 3)
	mustRelease(t, held)
	lease := granted(t, reader, "the reader")
	mustWait(t, "the later writer", writer)
	mustRelease(t, lease)
	mustRelease(t, granted(t, writer, "the later writer"))
}

// TestAReaderBehindAQueuedWriterWaits: a stream of readers does not keep a writer out forever
// (Redisson issue 5379).
func TestAReaderBehindAQueuedWriterWaits(t *testing.T) {
	t.Parallel()
	const path = "/rw/fair"
	c := newClient(t, zktest.Shared(t).Addr())
	rw := newReadWrite(t, c, path)
	held := mustLockAs(asOwner(t, "reader 1"), t, rw.Read())
	shared := mustLockAs(asOwner(t, "reader 2"), t, rw.Read())
	writer := queueUp(asOwner(t, "writer"), t, rw.Write(), c, path, 3)
	mustBeHeld(asOwner(t, "reader 3"), t, rw.Read())
	reader := queueUp(asOwner(t, "reader 4"), t, rw.Read(), c, path, 4)
	mustRelease(t, held)
	mustWait(t, "whoever came after the second reader", writer, reader)
	mustRelease(t, shared)
	lease := granted(t, writer, "the writer")
	mustWait(t, "the reader behind it", reader)
	mustRelease(t, lease)
	mustRelease(t, granted(t, reader, "the reader"))
}

// TestAWritersReleaseWakesOnlyTheReadersBehindIt counts what others ask the
// server: Curator's readers all watch the first writer.
func TestAWritersReleaseWakesOnlyTheReadersBehindIt(t *testing.T) {
	t.Parallel()
	const path = "/rw/herd"
	server := zktest.Shared(t)
	c := newClient(t, server.Addr())
	rw := newReadWrite(t, c, path)
	held := mustLockAs(asOwner(t, "writer 1"), t, rw.Write())
	reader := queueUp(asOwner(t, "reader 2"), t, rw.Read(), c, path, 2)
	writer := queueUp(asOwner(t, "writer 3"), t, rw.Write(), c, path, 3)
	behind, proxy := behindProxy(t, server)
	var others []<-chan result
	for n := range 4 {
		others = append(others, queueUp(asOwner(t, "reader"), t, newReadWrite(t, behind, path).Read(), c, path, 4+n))
		// Each reader watches its own znode; the first one also watches both writers, for all.
		zktest.Eventually(t, generous, "its watches to be set", func() bool { return proxy.Count(fault.GetData) == 3+n })
	}
	proxy.ResetRequests()
	mustRelease(t, held)
	lease := granted(t, reader, "the reader behind the first writer")
	mustRelease(t, lease)
	lease = granted(t, writer, "the second writer")
	for _, r := range proxy.Requests() {
		reads := r.Op == fault.GetChildren || r.Op == fault.GetData || r.Op == fault.Exists
		if reads && strings.HasPrefix(r.Path, path) { // the client's heartbeat reads elsewhere
			t.Errorf("%v of %s by a reader that had nothing to hope for", r.Op, r.Path)
		}
	}
	mustRelease(t, lease)
	for _, done := range others {
		mustRelease(t, granted(t, done, "a reader behind the second writer"))
	}
}

// TestHandOffWhereTheCounterWraps has a server whose numbers go on with negative ones.
func TestHandOffWhereTheCounterWraps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/handoff/wraps"
		srv := virtualServer(t, zkserver.WithSequenceWrap())
		c := virtualClient(t, srv)
		must.Get(c.Create(t.Context(), path, nil, framework.WithParents()))(t)
		must.OK(t, srv.SetNextSequence(path, math.MaxInt32-2))
		held := mustLock(t, newMutex(t, c, path))
		var queued []<-chan result
		for range 6 {
			queued = append(queued, lockLater(t.Context(), newMutex(t, virtualClient(t, srv), path)))
			synctest.Wait()
		}
		for i, next := range queued {
			mustRelease(t, held)
			got := must.Receive(t, next, fmt.Sprint("the grant to ", i))
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			held = got.Lease
		}
		mustRelease(t, held)
	})
}

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
			last := lockLater(asOwner(t, "last"), second.Read())
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
			owner := asOwner(t, "owner")
			writer := mustLockAs(owner, t, first.Write())
			for name, get := range map[string]func(context.Context) (*lock.Lease, error){
				"Lock": first.Read().Lock, "TryLock": first.Read().TryLock,
			} {
				wantErr(t, name, errOf(get(owner)), lock.ErrCounterEnd)
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
				var locks []lock.Locker
				for range clients {
					locks = append(locks, k.lock(t, virtualClient(t, srv), path))
				}
				for i, l := range locks {
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
	wantErr(t, "release", lease.Release(t.Context()), nil)
}
