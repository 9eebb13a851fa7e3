package lock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// A sharer is one kind of contender for a path.
type sharer struct {
	name    string
	lock    newKind
	noTry   bool
	foreign string // of the kazoo znode that is used for it
}

func ofElection(format leader.Format) sharer {
	return sharer{name: "leader." + format.String(), noTry: true, lock: func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
		t.Helper()
		return recipetest.Candidate{Election: must.Get(leader.New(c, path, append(as[leader.Option](opts), leader.WithFormat(format))...))(t)}
	}}
}

// ofSemaphore is a contender for some of n permits.
func ofSemaphore(name string, some, n int) sharer {
	return sharer{name: name, lock: func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
		t.Helper()
		return recipetest.Permits{Semaphore: must.Get(semaphore.New(c, path, n, as[semaphore.Option](opts)...))(t), N: some}
	}}
}

// sharers are the kinds whose pairs the table has.
func sharers() []sharer {
	return []sharer{
		{name: "Mutex", lock: mutexAt},
		{name: "Multi", lock: func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
			t.Helper()
			return newMulti(t, newMutex(t, c, path, opts...), newMutex(t, c, path+"-also", opts...))
		}},
		ofElection(leader.Selector),
		ofElection(leader.Latch),
		{name: "RWMutex.Write", lock: writeSideAt},
		{name: "RWMutex.Read", lock: readSideAt},
		{name: "SemaphoreMutex", lock: semaphoreMutexAt},
		ofSemaphore("Semaphore", 1, 1),
		{name: "UnfairMutex", lock: func(t testing.TB, c *framework.Client, path string, opts ...lock.Option) lock.Locker {
			t.Helper()
			return newUnfairMutex(t, c, path, opts...)
		}},
		{name: "kazoo's Lock", foreign: "0123456789abcdef0123456789abcdef__lock__"},
		{name: "kazoo's ReadLock", foreign: "0123456789abcdef0123456789abcdef__rlock__"},
	}
}

// hold has the kind hold the path, until the function that it returns is called.
func (s sharer) hold(t *testing.T, c *framework.Client, path string) (release func()) {
	t.Helper()
	if s.foreign != "" {
		made := foreignAt(t, c, path+"/"+s.foreign)
		return func() { deleteNode(t, c, made) }
	}
	ctx := asOwner(t, "first")
	held := must.Get(s.lock(t, c, path).Lock(ctx))(t)
	return func() {
		wantErr(t, fmt.Sprintf("%s after the other kind came", s.name), held.Err(), nil)
		mustRelease(t, held)
	}
}

// The outcomes of a contender that comes second.
const (
	itWaits   = "waits"
	itShares  = "shares"
	isRefused = "refused"
)

// come has the kind come second, and returns the outcome. It leaves nothing.
func (s sharer) come(t *testing.T, c *framework.Client, path string) string {
	t.Helper()
	before := len(ephemerals(t, c, path))
	alone := func() bool { return len(ephemerals(t, c, path)) == before }
	defer func() { zktest.Eventually(t, generous, "what came second is gone", alone) }()
	ctx, cancel := context.WithTimeout(asOwner(t, "second"), 3*time.Second)
	defer cancel()
	l, err := s.lock(t, c, path).Lock(ctx)
	outcome := ""
	switch {
	case err == nil:
		outcome = itShares
		mustRelease(t, l)
	case errors.Is(err, lock.ErrMixed):
		outcome = isRefused
	case errors.Is(err, context.DeadlineExceeded):
		outcome = itWaits
	default:
		t.Errorf("%s: %v", s.name, err)
	}
	if s.noTry {
		return outcome
	}
	zktest.Eventually(t, generous, "what came second is gone", alone)
	l, err = s.lock(t, c, path).TryLock(asOwner(t, "third"))
	want := map[string]error{itShares: nil, isRefused: lock.ErrMixed, itWaits: lock.ErrHeld}[outcome]
	if !errors.Is(err, want) {
		t.Errorf("a try of %s, which %s: %v, want %v", s.name, outcome, err, want)
	}
	if err == nil {
		mustRelease(t, l)
	}
	return outcome
}

// TestKindsOnOnePath has each kind of lock hold a path and each kind come second, in the same session
// and in another one. Those in one line of the page about guarantees wait for each other.
func TestKindsOnOnePath(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		first, other := env.Client(t), env.Client(t)
		lines := linesOfKinds(t)
		for i, holder := range sharers() {
			for k, s := range sharers() {
				if s.foreign != "" {
					continue
				}
				if lines[s.name] == 0 {
					t.Errorf("docs/guarantees.md has no %s in its list of kinds", s.name)
				}
				want := isRefused
				switch {
				case holder.name == "RWMutex.Read" && s.name == "RWMutex.Read":
					want = itShares
				case lines[holder.name] == lines[s.name]:
					want = itWaits
				}
				for session, c := range map[string]*framework.Client{"same": first, "other": other} {
					path := fmt.Sprintf("/kinds/%d-%d-%s", i, k, session)
					release := holder.hold(t, first, path)
					env.Quiesce() // a semaphore mutex leaves its queue after the grant
					if got := s.come(t, c, path); got != want {
						t.Errorf("%s, then %s in the %s session: %s, docs/guarantees.md says %s", holder.name, s.name, session, got, want)
					}
					release()
				}
			}
		}
	}, zkenv.Only("every cell at one server", zkenv.Embedded))
}

// linesOfKinds returns in which line of the page's list each kind is, from 1 on.
func linesOfKinds(t *testing.T) map[string]int {
	t.Helper()
	page := string(must.Get(os.ReadFile("../../docs/guarantees.md"))(t))
	_, section, _ := strings.Cut(page, "\n## Kinds of locks on one path\n")
	_, list, _ := strings.Cut(section, "\n```text\n")
	list, _, _ = strings.Cut(list, "\n```\n")
	lines := make(map[string]int)
	for i, line := range strings.Split(list, "\n") {
		for name := range strings.SplitSeq(line, ", ") {
			lines[name] = i + 1
		}
	}
	return lines
}

// TestKindsThatComeTogether has two kinds come to a path at the same time, in several orders of their
// requests. Both are granted only if they share the path, and one is granted always.
func TestKindsThatComeTogether(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		clients := []*framework.Client{env.Client(t), env.Client(t)}
		var kinds []sharer
		for _, s := range sharers() {
			if s.foreign == "" {
				kinds = append(kinds, s)
			}
		}
		for i, one := range kinds {
			for k, two := range kinds[:i+1] {
				for round := range 5 {
					path := fmt.Sprintf("/together/%d-%d-%d", i, k, round)
					var leases [2]*lease.Lease
					var errs [2]error
					done := make(chan struct{}, 2)
					for n, s := range []sharer{one, two} {
						acquire := s.lock(t, clients[n], path).Lock
						go func() {
							defer func() { done <- struct{}{} }()
							ctx, cancel := context.WithTimeout(lock.ContextWithOwner(t.Context(), lock.NewOwner(s.name)), 3*time.Second)
							defer cancel()
							leases[n], errs[n] = acquire(ctx)
						}()
					}
					<-done
					<-done
					readers := one.name == "RWMutex.Read" && two.name == one.name
					if errs[0] == nil && errs[1] == nil && !readers {
						t.Errorf("%s and %s hold %s together", one.name, two.name, path)
					}
					if errors.Is(errs[0], lock.ErrMixed) && errors.Is(errs[1], lock.ErrMixed) {
						t.Errorf("%s and %s are both refused at %s", one.name, two.name, path)
					}
					for n, err := range errs {
						if err == nil {
							mustRelease(t, leases[n])
						} else if !errors.Is(err, lock.ErrMixed) && !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("%s: %v", path, err)
						}
					}
				}
			}
		}
	}, zkenv.Only("every pair at one server", zkenv.Embedded))
}

// TestKindsAreCheckedBeforeEveryGrant has the requests fail or be late by which a contender of another
// kind would be seen first. No later request grants the lock at the same time.
func TestKindsAreCheckedBeforeEveryGrant(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]newKind{
		"mutex": mutexAt, "semaphore mutex": semaphoreMutexAt,
		"second member of a multi": func(t testing.TB, c *framework.Client, path string, _ ...lock.Option) lock.Locker {
			t.Helper()
			return newMulti(t, newMutexes(t, c, path, "/a", "/b")...)
		},
	} {
		envSubtest(t, name, func(t *testing.T, env *zkenv.Env) {
			const path = "/every-way"
			held := mustLock(t, newReadWrite(t, env.Client(t), path).Write())
			c, route := onRoute(t, env)
			l := make(t, c, path)
			// The connection breaks at the listing, so another one shows the contenders.
			broken := route.Rules().Add(fault.Rule{Path: path, Action: fault.CutBefore, Times: 1})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			got, err := l.Lock(ctx)
			if !errors.Is(err, lock.ErrMixed) {
				t.Errorf("Lock beside a writer: %v, %v, want ErrMixed", got, err)
			}
			must.Receive(t, broken.Hit(), "the break")
			mustRelease(t, held)
		}, zkenv.Only("virtual time", zkenv.Embedded))
	}
}

// TestForeignChildrenOfALock has other programs' znodes in a lock's directory: kazoo issue 309.
func TestForeignChildrenOfALock(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		children     string
		mutex, write string // what comes of a contender behind it
	}{
		"of no format":                         {"config 0 content _c_x lock- lock-abc lock-12 _c_short-lock-00000 __READ__ __WRIT__12", itShares, itShares},
		"with a number alone":                  {"0000000001 x-0000000000", itShares, itShares},
		"a directory of other locks":           {"locks", itShares, itShares},
		"a directory called leases":            {"leases", itShares, itShares},
		"a permit":                             {"leases/x-lease-0000000001", isRefused, isRefused},
		"of another program in Curator's form": {"anything-lock-0000000000", itWaits, isRefused},
		"of go-zookeeper":                      {"lock-0000000000", itWaits, isRefused},
		"of Curator with a name of its own":    {"_c_0123456789abcdef0123456789abcdef-lock-0000000000", itWaits, isRefused},
	} {
		envSubtest(t, name, func(t *testing.T, env *zkenv.Env) {
			c, path := env.Client(t), anyPath("/foreign")
			for child := range strings.FieldsSeq(tc.children) {
				createDirs(t, c, path+"/"+child)
			}
			ahead := map[string]int{itWaits: 1}[tc.mutex]
			found, err := newMutex(t, c, path).Participants(t.Context())
			wantErr(t, "Participants", err, map[string]error{isRefused: lock.ErrMixed}[tc.mutex])
			if len(found) != ahead {
				t.Errorf("participants %v; want %d", found, ahead)
			}
			all := sharers()
			if got := all[0].come(t, c, path); got != tc.mutex {
				t.Errorf("a mutex %s, want %s", got, tc.mutex)
			}
			if got := all[4].come(t, c, path); got != tc.write {
				t.Errorf("a writer %s, want %s", got, tc.write)
			}
		}, oneOfEach())
	}
}

// TestLocksOfUnknownLibraries has a contender of each library come first: Vitess's and rivals' that name theirs
// otherwise. Every kind is refused next to it, and waits for none of the persistent znodes of such names.
func TestLocksOfUnknownLibraries(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "x-", "n_", "_c_00000000-0000-4000-8000-000000000000-candidate-"} {
		for outcome, opts := range map[string][]framework.CreateOption{isRefused: {framework.Ephemeral()}, itShares: nil} {
			envSubtest(t, fmt.Sprintf("%q %s", prefix, outcome), func(t *testing.T, env *zkenv.Env) {
				c := env.Client(t)
				for i, s := range sharers() {
					if s.foreign != "" || s.name == "UnfairMutex" { // which has no directory
						continue
					}
					path := fmt.Sprintf("/unknown/%d", i)
					must.Get(c.Create(t.Context(), path+"/"+prefix, nil, append(opts, framework.Sequential(), framework.WithParents())...))(t)
					if got := s.come(t, c, path); got != outcome {
						t.Errorf("%s %s, want %s", s.name, got, outcome)
					}
				}
			}, zkenv.Only("every name at one server", zkenv.Embedded))
		}
	}
}

// foreignAt creates the znode of a contender of another kind, which was refused and whose deletion
// is pending.
func foreignAt(t *testing.T, c *framework.Client, path string) (made string) {
	t.Helper()
	return createNode(t, c, path, framework.Sequential())
}

// TestBehindARefusedContender has a contender come behind one of another kind that is to be refused,
// because one of the first kind was there before it.
func TestBehindARefusedContender(t *testing.T) {
	t.Parallel()
	ofTwo := ofSemaphore("Semaphore of 2", 1, 2)
	all := sharers()
	for _, tc := range []struct {
		kind    sharer
		refused string // the znode
		shares  bool   // once that is gone, two hold
	}{
		{all[0], "/x-latch-", false},
		{all[0], "/x-", false}, // of an unknown library
		{all[0], "/leases/x-lease-", false},
		{all[1], "/x-latch-", false},
		{all[3], "/x-lock-", false},
		{all[4], "/x-lock-", false},
		{all[5], "/x-lock-", true},
		{all[5], "/leases/x-lease-", true},
		{ofTwo, "/x-lock-", true},
		{ofTwo, "/x-__WRIT__", true},
	} {
		for _, remains := range []bool{false, true} {
			envSubtest(t, fmt.Sprintf("%s%s, which remains %v", tc.kind.name, tc.refused, remains), func(t *testing.T, env *zkenv.Env) {
				c, path := env.Client(t), "/behind"
				first := must.Get(tc.kind.lock(t, c, path).Lock(asOwner(t, "first")))(t)
				env.Quiesce() // a semaphore leaves its queue after the grant
				other := foreignAt(t, env.Client(t), path+tc.refused)
				if !tc.kind.noTry {
					wantErr(t, "a try", errOf(tc.kind.lock(t, c, path).TryLock(asOwner(t, "third"))), lock.ErrHeld)
				}
				second := lockLater(asOwner(t, "second"), tc.kind.lock(t, env.Client(t), path))
				env.Quiesce()
				mustWaitStill(t, "behind a contender that is to be refused", second)
				if remains { // a program that refuses nothing holds
					mustRelease(t, first)
					wantErr(t, "beside a holder of another kind", failed(t, second, "the refusal"), lock.ErrMixed)
					return
				}
				deleteNode(t, c, other)
				if !tc.shares {
					mustRelease(t, first)
				}
				mustRelease(t, granted(t, second, "the second lease"))
				if tc.shares {
					mustRelease(t, first)
				}
			}, zkenv.Only("virtual time", zkenv.Embedded))
		}
	}
}

// TestBehindARefusedContender_unreadable has a semaphore's contender look again, when the contender of another kind
// has gone, at a directory that it may not list any more.
func TestBehindARefusedContender_unreadable(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		const path = "/behind"
		operator := virtualClient(t, srv, framework.WithAuth("digest", []byte("operator:secret")))
		ofTwo := ofSemaphore("Semaphore of 2", 1, 2)
		mustLock(t, ofTwo.lock(t, virtualClient(t, srv), path))
		other := foreignAt(t, operator, path+"/x-lock-")
		second := lockLater(t.Context(), ofTwo.lock(t, virtualClient(t, srv), path))
		await(time.Second)
		mustWaitStill(t, "behind a contender that is to be refused", second)
		closeTo(t, operator, path)
		deleteNode(t, operator, other)
		wantErr(t, "Acquire", failed(t, second, "the end of the wait"), framework.ErrNoAuth)
	})
}

// TestTheEarlierOfTwoKindsWins has the second of two contenders with different counters create its znode
// before the first one lists.
func TestTheEarlierOfTwoKindsWins(t *testing.T) {
	t.Parallel()
	all := sharers()
	for _, tc := range []struct {
		kind  sharer
		other string
	}{
		{all[0], "/leases/x-lease-"},
		{all[3], "/leases/x-lease-"},
		{all[4], "/leases/x-lease-"},
		{all[5], "/leases/x-lease-"},
		{all[6], "/x-lock-"},
		{all[7], "/x-lock-"},
		{all[7], "/x-__READ__"},
		{all[0], "/x-__READ__"},
		{all[4], "/x-lock-"},
		{all[5], "/x-lock-"},
	} {
		envSubtest(t, tc.kind.name+tc.other, func(t *testing.T, env *zkenv.Env) {
			const path = "/earlier"
			c, route := onRoute(t, env)
			other := env.Client(t)
			must.Get(other.Create(t.Context(), path+"/leases", nil, framework.WithParents()))(t)
			held := route.Rules().Add(fault.Rule{Path: path, Action: fault.HoldRequest, Times: 1})
			first := lockLater(asOwner(t, "first"), tc.kind.lock(t, c, path))
			must.Receive(t, held.Hit(), "the listing")
			env.Quiesce() // the znode exists
			foreignAt(t, other, path+tc.other)
			held.Release()
			granted(t, first, "the earlier one")
			ctx, cancel := context.WithTimeout(asOwner(t, "second"), 3*time.Second)
			defer cancel()
			for _, late := range []sharer{all[0], all[6]} { // of which one is of the later kind
				_, err := late.lock(t, other, path).Lock(ctx)
				if !errors.Is(err, lock.ErrMixed) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s after both: %v, want ErrMixed or a wait", late.name, err)
				}
			}
		}, zkenv.Only("virtual time", zkenv.Embedded))
	}
}

// TestARefusedContenderThatGoesFirst has a contender look behind a holder of its kind and one of another
// kind, which is to be refused. Both go while it looks, the holder last. So it is not refused.
func TestARefusedContenderThatGoesFirst(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const path = "/goes-first"
		c, route := onRoute(t, env)
		other := env.Client(t)
		first := must.Get(newMutex(t, other, path).Lock(asOwner(t, "first")))(t)
		refused := foreignAt(t, other, path+"/leases/x-lease-")
		held := route.Rules().Add(fault.Rule{Op: fault.GetData, Path: first.Node(), Action: fault.HoldRequest})
		second := lockLater(asOwner(t, "second"), newMutex(t, c, path))
		must.Receive(t, held.Hit(), "the look at the holder")
		must.OK(t, other.Delete(t.Context(), refused))
		mustRelease(t, first)
		held.Release()
		granted(t, second, "the lock after both had gone")
	}, zkenv.Only("virtual time", zkenv.Embedded))
}

// A contender behind many of another kind reads which of them came first in few requests. If it may not
// read their data, it reads each Stat, for a listing and once more before it is refused.
func TestManyContendersOfAnotherKindCostFewRequests(t *testing.T) {
	t.Parallel()
	const others = 200
	for _, tc := range []struct {
		name, child string
		kind        int // of sharers
	}{
		{"a mutex beside permits", "/leases/x-lease-", 0},
		{"a writer beside permits", "/leases/x-lease-", 4},
		{"a semaphore beside a mutex's contenders", "/x-lock-", 7},
	} {
		for perms, most := range map[acl.Permission]int{acl.All: 25, acl.All &^ acl.Read: 2*others + 25} {
			envSubtest(t, fmt.Sprintf("%s, %v", tc.name, perms), func(t *testing.T, env *zkenv.Env) {
				c, path := env.Client(t), "/many"
				must.Get(c.Create(t.Context(), path+"/leases", nil, framework.WithParents()))(t)
				var made string
				for range others {
					made = must.Get(c.Create(t.Context(), path+tc.child, nil, framework.Ephemeral(), framework.Sequential(),
						framework.WithACL(acl.Entry{Perms: perms, Scheme: "world", ID: "anyone"})))(t)
				}
				second, route := onRoute(t, env)
				want := lock.ErrMixed
				if _, _, err := second.Exists(t.Context(), made); err != nil { // newer servers refuse a Stat, too
					want = framework.ErrNoAuth
				}
				requests := route.Rules().Add(fault.Rule{Action: fault.Pass, Times: fault.Forever})
				if _, err := sharers()[tc.kind].lock(t, second, path).TryLock(asOwner(t, "second")); !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
				if n := requests.Hits(); n > most {
					t.Errorf("%d requests beside %d contenders of another kind, want at most %d", n, others, most)
				} else {
					t.Logf("%d requests", n)
				}
			}, zkenv.Only("it counts requests", zkenv.Embedded))
		}
	}
}
