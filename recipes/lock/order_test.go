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

// queuesOfSides are what contenders for the two sides of a read/write lock do. A step is a contender that
// locks ("+") or releases ("-"), and behind "=" are those that are granted by that. All others wait. A
// contender is a side, R or W, and an owner. The owner z is a process of Curator's, whose znodes a client
// creates by hand.
var queuesOfSides = map[string]string{
	"grants go in the order of the queue": "+Wa=Wa +Rb +Rc +Wd +Re +Wf -Wa=Rb,Rc -Rc -Rb=Wd -Wd=Re -Re=Wf -Wf",
	// kazoo issue 649, where a reader waited for a writer that had come later and waited for it.
	"a reader ignores later writers": "+Wa=Wa +Rb +Wc -Wa=Rb -Rb=Wc -Wc",
	// Redisson issue 5379: a stream of readers does not keep a writer out forever.
	"a reader waits behind a queued writer": "+Ra=Ra +Rb=Rb +Wc +Rd -Ra -Rb=Wc -Wc=Rd -Rd",
	// CURATOR-621, where a queued writer got in.
	"a downgrade leaves no gap":                        "+Wa=Wa +Wb +Ra=Ra +Rc -Wa -Ra=Wb -Wb=Rc -Rc",
	"a downgrade comes ahead of all writers that wait": "+Wa=Wa +Wb +Wc +Wd +Ra=Ra -Wa -Ra=Wb -Wb=Wc -Wc=Wd -Wd",
	"a downgrade shares with the readers behind":       "+Wa=Wa +Rb +Ra=Ra -Wa=Rb -Rb -Ra",
	"a downgrade is released in the order of nesting":  "+Wa=Wa +Ra=Ra +Wb -Ra -Wa=Wb -Wb",
	"a downgrade of Curator's":                         "+Wz +Rb +Wc +Rz +Rd -Wz=Rb -Rb -Rz=Wc -Wc=Rd -Rd",
	"a downgrade of Curator's, released as nested":     "+Wz +Rz +Wb +Rc -Rz -Wz=Wb -Wb=Rc -Rc",
	"a downgrade of Curator's ahead of two writers":    "+Wz +Rb +Wc +Wd +Rz -Wz=Rb -Rb -Rz=Wc -Wc=Wd -Wd",
}

// sessionsOfOwners are the ways to divide the owners a, b, c… among sessions.
var sessionsOfOwners = map[string]func(owner byte) int{
	"one session":                       func(byte) int { return 0 },
	"a session each":                    func(owner byte) int { return int(owner - 'a') },
	"the first in a session of its own": func(owner byte) int { return min(1, int(owner-'a')) },
}

// TestQueueOfSides has the sides of a read/write lock granted by their order, even if all znodes have one
// number because the counter has reached its end. A downgrade needs a number of its own.
func TestQueueOfSides(t *testing.T) {
	t.Parallel()
	for name, steps := range queuesOfSides {
		for sessions, of := range sessionsOfOwners {
			t.Run(name+", "+sessions, func(t *testing.T) {
				inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
					newSides(t, anyPath("/queue-of-sides"), of, func() *framework.Client { return env.Client(t) }).play(steps)
				}, oneOfEach())
				if !strings.HasPrefix(name, "a downgrade") {
					synctest.Test(t, func(t *testing.T) {
						const path = "/counter-end-sides"
						srv := nearTheEnd(t, path, 0)
						newSides(t, path, of, func() *framework.Client { return virtualClient(t, srv) }).play(steps)
					})
				}
			})
		}
	}
}

// sides are the contenders of a queue of queuesOfSides.
type sides struct {
	*testing.T
	path     string
	observer *framework.Client
	of       func(owner byte) *lock.RWMutex
	owners   map[byte]context.Context
	waiting  map[string]<-chan result
	held     map[string]*lock.Lease
	curators map[string]string // the paths of its znodes
}

func newSides(t *testing.T, path string, session func(byte) int, connect func() *framework.Client) *sides {
	t.Helper()
	locks := make(map[int]*lock.RWMutex)
	return &sides{
		T: t, path: path, observer: connect(), owners: make(map[byte]context.Context),
		waiting: make(map[string]<-chan result), held: make(map[string]*lock.Lease), curators: make(map[string]string),
		of: func(owner byte) *lock.RWMutex {
			n := session(owner)
			if locks[n] == nil {
				locks[n] = newReadWrite(t, connect(), path)
			}
			return locks[n]
		},
	}
}

// play does all steps, and checks who is granted by each.
func (s *sides) play(steps string) {
	s.Helper()
	for step := range strings.FieldsSeq(steps) {
		did, grants, _ := strings.Cut(step, "=")
		s.step(did[0] == '+', did[1:])
		awaitEphemerals(s, s.observer, s.path, len(s.waiting)+len(s.held)+len(s.curators))
		for who := range strings.FieldsFuncSeq(grants, func(r rune) bool { return r == ',' }) {
			s.held[who] = granted(s, s.waiting[who], step+": "+who)
			delete(s.waiting, who)
		}
		for who, done := range s.waiting {
			mustWait(s, step+": "+who, done)
		}
	}
	if len(s.waiting)+len(s.held)+len(s.curators) > 0 {
		s.Errorf("%v wait, %v hold, and Curator has %v in the end", s.waiting, s.held, s.curators)
	}
}

// step has the contender lock or release.
func (s *sides) step(locks bool, who string) {
	s.Helper()
	side, owner := who[0], who[1]
	switch {
	case owner == 'z' && !locks:
		deleteNode(s, s.observer, s.curators[who])
		delete(s.curators, who)
	case owner == 'z' && side == 'W':
		s.curators[who] = createNode(s, s.observer, s.path+"/_c_ffffffff-ffff-4fff-bfff-ffffffffffff-__WRIT__", framework.Sequential())
	case owner == 'z':
		s.curators[who] = createNode(s, s.observer, s.path+"/_c_00000000-0000-4000-8000-000000000000-__READ__"+digits(s.curators["Wz"]))
	case !locks:
		mustRelease(s, s.held[who])
		delete(s.held, who)
	default:
		if s.owners[owner] == nil {
			s.owners[owner] = asOwner(s, string(owner)) //nolint:fatcontext // no context is derived from another
		}
		l := s.of(owner).Read()
		if side == 'W' {
			l = s.of(owner).Write()
		}
		s.waiting[who] = lockLater(s.owners[owner], l)
	}
}

// TestAWritersReleaseWakesOnlyTheReadersBehindIt counts what others ask the
// server: Curator's readers all watch the first writer.
func TestAWritersReleaseWakesOnlyTheReadersBehindIt(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path := anyPath("/rw/herd")
		c := env.Client(t)
		rw := newReadWrite(t, c, path)
		held := mustLockAs(asOwner(t, "writer 1"), t, rw.Write())
		reader := queueUp(asOwner(t, "reader 2"), t, rw.Read(), c, path, 2)
		writer := queueUp(asOwner(t, "writer 3"), t, rw.Write(), c, path, 3)
		behind, route := onRoute(t, env)
		var others []<-chan result
		for n := range 4 {
			others = append(others, queueUp(asOwner(t, "reader"), t, newReadWrite(t, behind, path).Read(), c, path, 4+n))
		}
		env.Quiesce()
		route.ResetRequests()
		mustRelease(t, held)
		mustRelease(t, granted(t, reader, "the reader behind the first writer"))
		lease := granted(t, writer, "the second writer")
		if n := count(route, path, fault.GetChildren, fault.GetData, fault.Exists); n != 0 {
			t.Errorf("%d reads by readers that had nothing to hope for", n)
		}
		mustRelease(t, lease)
		mustReleaseEach(t, others...)
	}, oneOfEach())
}

// TestHandOffWhereTheCounterWraps has a server whose numbers go on with negative ones.
func TestHandOffWhereTheCounterWraps(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/handoff/wraps"
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
	}, zkserver.WithSequenceWrap())
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

// TestSidesAtTheCounterEnd has a try refused by a znode of the same number, and no downgrade: the number
// of a writer's znode does not make another one its owner's.
func TestSidesAtTheCounterEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const path = "/counter-end-sides"
		srv := nearTheEnd(t, path, 0)
		first, second := newReadWrite(t, virtualClient(t, srv), path), newReadWrite(t, virtualClient(t, srv), path)
		owner := asOwner(t, "owner")
		writer := mustLockAs(owner, t, first.Write())
		mustRefuse(t, second.Read())
		mustRefuse(t, second.Write())
		wantErr(t, "Lock", errOf(first.Read().Lock(owner)), lock.ErrCounterEnd)
		wantErr(t, "TryLock", errOf(first.Read().TryLock(owner)), lock.ErrCounterEnd)
		wantErr(t, "the write lease", writer.Err(), nil)
		mustRelease(t, writer)
		mustRelease(t, mustTry(t, second.Read()))
		if left := znodesBelow(srv, path); len(left) != 1 {
			t.Errorf("left: %v", left)
		}
	})
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
