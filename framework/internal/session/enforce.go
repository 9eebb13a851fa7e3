package session

import (
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/usercall"
)

// The deadline's timer calls enforce, on a goroutine that does nothing else. From there to the end of
// the last lease, there is no function of the user's, no log and no I/O, but for the parent of a context. The
// mutexes on the way are holdSet.mu, those of the wire and of the list of servers, and a hold's in package hold:
// none is held over any of these. The session's loop does the rest, in finish.

// A holdSet has the holds on a session, and ends them. Its mutex is held over nothing but its fields
// and closing channels.
type holdSet struct {
	mu      sync.Mutex // guards following
	members map[*Hold]struct{}
	secured int         // holds that are secured
	since   time.Time   // when the first of the present holds was taken
	err     error       // why the session is over
	atEnd   int         // holds that were lost with the session
	timer   *time.Timer // calls Session.enforce; nil before the session's first handshake
}

// setTimer makes enforce look at the deadline, which has become earlier or is the first.
func (s *Session) setTimer() {
	s.holds.mu.Lock()
	defer s.holds.mu.Unlock()
	s.setTimerLocked()
}

// setTimerLocked is setTimer. It needs holds.mu.
func (s *Session) setTimerLocked() {
	due := s.deadlineLocked()
	switch {
	case s.holds.err != nil || due.IsZero():
	case s.holds.timer == nil:
		s.holds.timer = time.AfterFunc(time.Until(due), s.enforce)
	default:
		s.holds.timer.Reset(time.Until(due))
	}
}

// enforce ends the session if its deadline has passed, and else looks again at the deadline, which a
// proof has moved. The timer calls it.
func (s *Session) enforce() {
	if !s.expireIfDue() {
		s.setTimer()
	}
}

// expireIfDue ends the session if its deadline has passed, and reports whether it has ended.
func (s *Session) expireIfDue() (over bool) {
	s.holds.mu.Lock()
	due := s.deadlineLocked()
	over = s.holds.err != nil
	expired := !over && !due.IsZero() && !time.Now().Before(due)
	s.holds.mu.Unlock()
	if expired {
		_ = s.lose(zkerr.ErrSessionDeadline) // Run returns it
	}
	return over || expired
}

// deadlineLocked returns when the session has to be abandoned, or zero if it has not begun. That is
// the certain deadline if a hold is secured by it, else the presumed deadline. If very many holds
// are secured, it is earlier, so that all are notified by the deadline. While there is a
// connection, bytes that arrive count, too, and the deadline passes only if the process was stopped for
// long, or the wire is stuck. It needs holds.mu.
func (s *Session) deadlineLocked() time.Time {
	if s.holds.secured > 0 {
		return s.wire.Status().Deadline.Add(-s.notifyTimeLocked())
	}
	st := s.wire.Status()
	if st.Heard.IsZero() {
		return st.Presumed
	}
	return later(st.Presumed, st.Heard.Add(st.Timeout))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// notifyTimeLocked returns how long it takes to notify all owners of secured holds, in whole
// milliseconds, at most T/16. A hold is secured only if its deadline is further ahead. It needs
// holds.mu.
func (s *Session) notifyTimeLocked() time.Duration {
	all := time.Duration(s.holds.secured) * notifyTime
	return min(all.Truncate(time.Millisecond), s.Timeout()/earlyFraction)
}

// lose ends the session for the first given cause, and returns that cause. When it returns, all holds
// are lost, and the leases of recipes that rest on them; finish does the rest. If another goroutine is
// ending the session, lose does not wait for it. It does not block.
func (s *Session) lose(cause error) error {
	s.holds.mu.Lock()
	if s.holds.err != nil {
		defer s.holds.mu.Unlock()
		return s.holds.err
	}
	if due := s.deadlineLocked(); !due.IsZero() && !time.Now().Before(due) && errors.Is(cause, zkerr.ErrSessionExpired) {
		cause = zkerr.ErrSessionDeadline // that came first: the process was stopped, or the timer is late
	}
	s.holds.err, s.holds.atEnd = cause, len(s.holds.members)
	if s.holds.timer != nil {
		s.holds.timer.Stop()
	}
	s.lost = slices.Collect(maps.Keys(s.holds.members))
	for _, h := range s.lost {
		h.loseLocked(cause)
	}
	clear(s.holds.members)
	s.holds.secured = 0
	s.holds.mu.Unlock()
	s.eachRecipe("a context's parent", func(h *Hold) { h.lose(cause) })
	s.wire.End(cause)
	s.cancel(cause)
	close(s.allLost)
	return cause
}

// finish is lose for the session's own goroutine. It also waits until the goroutine that ended the
// session, which may be another one, has done that. Then it does what may take time.
func (s *Session) finish(cause error) error {
	cause = s.lose(cause)
	<-s.allLost
	if s.client.Err() == nil && !s.cfg.ReadOnly { // else the connection closes the session in order
		s.wire.CloseConn(cause)
	}
	s.watches.FireAll()
	go s.notifyUsers(cause) // ends with the functions; AwaitUsers waits for it
	s.eachRecipe("the clean-up after a lost lease", func(h *Hold) { h.after() })
	return cause
}

// calledByOne is for how many leases one goroutine calls, if there are processors for more goroutines. To
// start a goroutine takes less time than so many calls.
const calledByOne = 1000

// eachRecipe calls fn with each hold that a recipe has lost, on several goroutines if there are many. A
// panic, of a context's parent that is the user's own, is logged with the name.
func (s *Session) eachRecipe(name string, fn func(h *Hold)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(s.lost); i = int(next.Add(1)) - 1 {
			if h := s.lost[i]; h.lose != nil {
				usercall.Guard(s.cfg.Log, name, func() { fn(h) })
			}
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0)-1, len(s.lost)/calledByOne) {
		others.Go(work)
	}
	work()
	others.Wait()
}

// AwaitUsers waits until the user's functions of OnLost and AfterLost have returned, for usersGrace. It
// is called when Run has returned.
func (s *Session) AwaitUsers() {
	grace := time.NewTimer(usersGrace)
	defer grace.Stop()
	select {
	case <-s.notified:
	case <-grace.C:
		s.cfg.Log.Warn("a function of OnLost or AfterLost is still at work")
	}
}

// usersGrace is how long the end of a session waits for the user's functions of OnLost and AfterLost.
const usersGrace = 5 * time.Second

// notifyUsers calls the functions of OnLost, each on a goroutine of its own, and when they have returned,
// those of AfterLost, one after another.
func (s *Session) notifyUsers(cause error) {
	defer close(s.notified)
	var users sync.WaitGroup
	for _, h := range s.lost {
		if h.onLost != nil {
			users.Go(func() { usercall.Guard(s.cfg.Log, "SessionHold.OnLost", func() { h.onLost(cause) }) })
		}
	}
	users.Wait()
	for _, h := range s.lost {
		if h.afterLost != nil {
			usercall.Guard(s.cfg.Log, "SessionHold.AfterLost", h.afterLost)
		}
	}
}
