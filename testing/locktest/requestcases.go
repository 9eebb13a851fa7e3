package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// requestCases are those that hold for every fault at any request.
func requestCases() []contractCase {
	var all []contractCase
	for sentence, action := range map[string]fault.Action{
		"Whichever request does not arrive, no two hold the lock and none is in another's way": fault.CutBefore,
		"Whichever reply is lost, no two hold the lock and none is in another's way":           fault.DropReply,
		"Whichever request is held up, no two hold the lock and none is in another's way":      fault.HoldRequest,
		"Whichever reply is held up, no two hold the lock and none is in another's way":        fault.HoldReply,
	} {
		all = append(all, contractCase{sentence: sentence, check: func(s *fixture) { s.meetEverywhere(action) }})
	}
	return all
}

// smallPacket keeps the buffers small of the hundreds of clients that are needed.
const smallPacket = 64 << 10

// A mishap is a fault at one request of an acquire and release, with a further fault on top.
type mishap struct {
	action    fault.Action
	contended bool // another client holds the lock at first
	stays     bool // that client does so until the attempt has ended
	ctxEnds   bool // with the mishap
	expires   bool // the session, with the mishap
}

func (m mishap) String() string {
	return fmt.Sprintf("%v, contended %v, to the end %v, ctx ends %v, session ends %v", m.action, m.contended, m.stays, m.ctxEnds, m.expires)
}

// meetEverywhere has the action meet each request in turn, with all that can come on top. That takes
// hundreds of attempts, so it does all of them with one embedded server. With other servers it leaves
// out what is the same for these.
func (s *fixture) meetEverywhere(action fault.Action) {
	other := s.env.Client(s)
	holds := action == fault.HoldRequest || action == fault.HoldReply
	for _, contended := range []bool{false, true} {
		for _, ctxEnds := range []bool{false, true} {
			for _, expires := range []bool{false, true} {
				m := mishap{action: action, contended: contended, ctxEnds: ctxEnds, expires: expires}
				if expires && !holds {
					continue // a hold before it has been the same
				}
				if s.env.Kind() != zkenv.Embedded && (contended || holds && ctxEnds == expires) {
					continue
				}
				s.meetEach(m, other)
				if m.stays = contended && ctxEnds; m.stays {
					s.meetEach(m, other)
				}
			}
		}
	}
}

// meetEach makes an attempt for each request that can be met.
func (s *fixture) meetEach(m mishap, other *framework.Client) {
	const most = 50 // far above what an acquire and release take
	n := 0
	for n < most && s.elsewhere().meet(m, n, other) {
		n++
	}
	if n < 2 || n == most {
		s.Errorf("%v: met %d requests of an acquire and release, want from 2 to %d", m, n, most-1)
	}
}

// meet locks and releases while m fails request number n. It reports false if there was no such
// request.
func (s *fixture) meet(m mishap, n int, other *framework.Client) bool {
	s.Helper()
	route := s.env.Route(s)
	c := route.Client(s, framework.WithSessionTimeout(sessionAtStake), framework.WithMaxPacket(smallPacket, smallPacket))
	l, session := s.locker(c), c.Session().ID
	vacate := func() {}
	if m.contended {
		vacate = s.occupyBy(other)
	}
	rule := route.Rules().Add(fault.Rule{Action: m.action, Skip: n})
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	done := make(chan error, 1)
	s.spawn(func() {
		done <- s.lockAndRelease(ctx, l, func(lease *lock.Lease) {
			if !m.expires || c.Session().ID != session { // else the znodes go before the client notices that
				s.mustExist(lease, c, other)
			}
		})
	})
	if m.contended {
		s.env.Quiesce()
		if m.stays && rule.Hits() == 0 {
			cancel() // all requests of an attempt that waits have been met
		}
		if !m.stays {
			vacate()
		}
	}
	var err error
	select {
	case <-rule.Hit():
		if m.ctxEnds {
			cancel()
		}
		if m.expires {
			route.Expire(s)
		}
		err = must.Receive(s, done, fmt.Sprintf("the end of Lock and Release after %v of request %d", m, n))
	case err = <-done:
	}
	hit := rule.Hits() > 0
	if err != nil && !errors.Is(err, lock.ErrLost) && (!m.ctxEnds || !errors.Is(err, context.Canceled)) {
		s.Errorf("%v of request %d: %v", m, n, err)
	}
	rule.Release()
	if m.stays {
		s.mustLeaveTheHolder(other)
		vacate()
	}
	s.mustBeFreeFor(other)
	s.mustBeQuiet(c)
	if s.Failed() {
		s.Fatalf("the above is of %v of request %d", m, n)
	}
	if err := errors.Join(c.Close(), route.Close()); err != nil {
		s.Error(err)
	}
	return hit
}

// lockAndRelease locks, calls check with the lease, and releases.
func (s *fixture) lockAndRelease(ctx context.Context, l lock.Locker, check func(*lock.Lease)) error {
	lease, err := s.lock(ctx, l)
	if err != nil {
		return err
	}
	check(lease)
	return s.release(ctx, lease)
}

// mustExist fails the test unless the znodes of a lease exist, and belong to the session of c,
// while the lease is held.
func (s *fixture) mustExist(lease *lock.Lease, c, other *framework.Client) {
	leases := lease.Members()
	if leases == nil {
		leases = []*lock.Lease{lease}
	}
	for _, l := range leases {
		session := c.Session().ID
		err := other.Sync(s.Context(), l.Node())
		st, ok, failed := other.Exists(s.Context(), l.Node())
		if err != nil || failed != nil {
			s.Errorf("looking for %s: %v", l.Node(), errors.Join(err, failed))
		}
		right := ok && st.EphemeralOwner == session && l.Fence() > 0 && l.Fence() <= st.Czxid
		if !right && lease.Err() == nil {
			s.Errorf("lease with fence %d: %s exists: %v, in session %#x with czxid %d, want session %#x",
				l.Fence(), l.Node(), ok, st.EphemeralOwner, st.Czxid, session)
		}
	}
}

// mustLeaveTheHolder waits until the holder's znodes are all that exists at the lock's path.
func (s *fixture) mustLeaveTheHolder(holder *framework.Client) {
	s.Helper()
	zktest.Eventually(s, generous, "the holder's znodes alone", func() bool {
		left, err := leftovers(s.Context(), holder, s.path)
		if err != nil {
			s.Fatal(err)
		}
		held := s.env.Ephemerals(s, holder.Session().ID)
		return len(left) > 0 && !slices.ContainsFunc(left, func(path string) bool { return !slices.Contains(held, path) })
	})
}
