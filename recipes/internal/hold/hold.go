// Package hold keeps a recipe's grant: the leases that share it, its loss and its release. A [Hold]
// rests on a [Grant], which each kind of lock implements. The leases of one owner share it, each by
// a [Share].
//
// A hold ends once, by the release of its last share or by a loss. A loss is reported before the
// ensemble can grant the lock to another client. The session reports its own end in time (see
// [framework.SessionHold]), and the hold does everything in that call.
//
// Lock order: a recipe may hold its own mutex while it calls [Hold.Join]. No mutex of this package
// is held while it calls a recipe, a user's function or the client.
package hold

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/errtype"
)

// The sentinels of package lease, which documents them.
var (
	ErrReleased    = errtype.New("lease: released", "released")
	ErrNodeDeleted = errtype.New("its znode was deleted by another client", "node_deleted")
	ErrSuspended   = errtype.New("the connection was suspended", "suspended")
)

// A Grant is what a hold rests on. Its methods may be called concurrently. Either Release or
// Discard is called, once.
type Grant interface {
	Node() string        // path of the znode, or of the first of several
	Fence() int64        // grows from each holder to the next
	Deadline() time.Time // until when the grant is certainly valid, by the proofs so far

	// Guards returns a check for each znode. A transaction with all of them fails unless the grant is
	// valid.
	Guards() []framework.TxnOp

	// Err returns why the grant is over, or nil while it is valid. It notices a deadline that has
	// just passed.
	Err() error
	// OnLost registers notify and after for the end of the grant. notify is called before another client
	// can be granted the lock, and not if the grant is over already. after is called after notify. If
	// a session ends with many grants, all are notified before the first after is called.
	OnLost(notify func(cause error), after func())

	// Release deletes the grant's znodes and waits for that. If it returns an error, the deletion
	// continues in the background, or the error is a loss.
	Release(ctx context.Context) error
	// Discard deletes the grant's znodes in the background.
	Discard()
}

// Hooks are notified of a hold's life, for telemetry. Leased calls no code outside. A hold ends once: with
// Released, Lost or Discarded.
type Hooks interface {
	Leased(shares int)
	// Reentered is called when a share has joined a hold that others have, as the nth.
	Reentered(n int)
	// Carry returns parent with the hold's span, for the work under it.
	Carry(parent context.Context) context.Context
	RevocationRequested()
	// Releasing returns the context of the release. Released is called at its end.
	Releasing(ctx context.Context) context.Context
	Released(err error)
	Lost(err error, at time.Time)
	Discarded(at time.Time)
}

// noHooks do nothing.
type noHooks struct{}

func (noHooks) Leased(int)                                    {}
func (noHooks) Reentered(int)                                 {}
func (noHooks) Carry(parent context.Context) context.Context  { return parent }
func (noHooks) RevocationRequested()                          {}
func (noHooks) Releasing(ctx context.Context) context.Context { return ctx }
func (noHooks) Released(error)                                {}
func (noHooks) Lost(error, time.Time)                         {}
func (noHooks) Discarded(time.Time)                           {}

// Options describe a hold.
type Options struct {
	Client *framework.Client
	Path   string // of the lock, as its user gave it
	Shown  string // Path in the ensemble, for errors; contender.NewLease sets it
	Grant  Grant
	Hooks  Hooks // nil for no telemetry

	// Znode is the znode that the hold's monitor watches; nil if the grant's parts have monitors.
	Znode *Znode
	// More are further znodes of the grant. If one of them is deleted, the hold is lost.
	More      []*Znode
	OnSuspend bool // the hold is lost when the connection breaks
	// Revoked is called with the oldest share, on another goroutine, when another client asks the
	// holder to release. It is nil if the lock ignores requests.
	Revoked func(*Share)

	Lost func(cause error) error // the error of a loss, for a cause
	// Ended is called once when the hold has ended. lost is nil after a release. Ended may be nil.
	Ended func(h *Hold, lost error)
}

// A Hold is a grant with the shares that hold it. Its methods may be called concurrently.
type Hold struct {
	Options             // immutable
	members  []*Share   // of a Multi's lease; nil for others
	monitors []*monitor // one for each znode

	mu     sync.Mutex // guards following; never held while code outside is called
	shares []*Share   // in the order of their joining; empty once the hold has ended
	leased bool       // it has had a share
	lost   chan struct{}
	err    error     // set once, before lost is closed
	ending *lostHold // what finish has to do; nil before the loss, and after finish

	// The first of each is allocated with the hold: most have one.
	first struct {
		share    Share
		shares   [1]*Share
		monitor  monitor
		monitors [1]*monitor
	}
}

// A lostHold is what is left to do for a hold that is lost and whose users know.
type lostHold struct {
	at    time.Time
	after []func() // of the shares
}

// New returns the first share of a new hold. members are the shares of a Multi's members. If the grant
// is over already, the hold is lost.
func New(o Options, members ...*Share) *Share {
	if o.Hooks == nil {
		o.Hooks = noHooks{}
	}
	h := &Hold{Options: o, members: members}
	first := h.Join()
	if o.Znode != nil {
		h.addMonitor(o.Znode)
	}
	for _, z := range o.More {
		h.addMonitor(z)
	}
	o.Grant.OnLost(h.notify, h.finish)
	for _, m := range h.monitors {
		m.start()
	}
	h.Check()
	return first
}

// Join returns one more share of the hold, or nil if the hold has ended.
func (h *Hold) Join() *Share {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leased && len(h.shares) == 0 || h.err != nil {
		return nil
	}
	s := &h.first.share
	if h.leased {
		s = new(Share)
	} else {
		h.leased, h.shares, s.first = true, h.first.shares[:0], true
	}
	s.hold = h
	h.shares = append(h.shares, s)
	s.number = len(h.shares)
	h.Hooks.Leased(len(h.shares))
	return s
}

// Check loses the hold if the grant is over.
func (h *Hold) Check() {
	if err := h.Grant.Err(); err != nil {
		h.lose(err)
	}
}

// Err returns the error of the loss, if the loss has been noticed.
func (h *Hold) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// Shares returns the number of shares, and the latest share, or nil if there is none.
func (h *Hold) Shares() (n int, latest *Share) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n = len(h.shares)
	if n == 0 {
		return 0, nil
	}
	return n, h.shares[n-1]
}

// Untouched reports whether each znode is as the holder created it, as far as is known: another
// client's request to release changes it, and a deletion removes it.
func (h *Hold) Untouched() bool {
	return !slices.ContainsFunc(h.monitors, func(m *monitor) bool { return !m.untouched() })
}

// lose ends the hold for the first cause: its shares, their contexts, and, in the background, the
// grant.
func (h *Hold) lose(cause error) {
	h.notify(cause)
	h.finish()
}

// notify ends the shares and their contexts for the first cause. A session that ends calls it where
// nothing may block: see [framework.SessionHold.OnLoss]. The rest is left to finish.
func (h *Hold) notify(cause error) {
	h.mu.Lock()
	if h.err != nil || len(h.shares) == 0 {
		h.mu.Unlock()
		return
	}
	err := h.Lost(cause)
	h.err = err
	if h.lost != nil {
		close(h.lost)
	}
	shares := slices.Clone(h.shares)
	ending := &lostHold{at: time.Now()}
	var pass []func(error)
	for _, s := range shares {
		if s.onLoss != nil {
			pass = append(pass, s.onLoss.lose)
			ending.after = append(ending.after, s.onLoss.after)
			s.onLoss = nil
		}
	}
	h.mu.Unlock()
	defer func() { // even if a context of the user's panics
		h.mu.Lock()
		h.ending = ending // now: a concurrent lose must not finish before all are notified
		h.mu.Unlock()
	}()
	for _, fn := range pass {
		fn(err)
	}
	for _, s := range shares {
		s.endContexts(err)
	}
}

// finish does, once, what is left after notify: telemetry, monitors, and the end of the grant.
func (h *Hold) finish() {
	h.mu.Lock()
	ending, err := h.ending, h.err
	h.ending = nil
	h.mu.Unlock()
	if ending == nil {
		return
	}
	h.report(func() { h.Hooks.Lost(err, ending.at) })
	h.stopMonitors()
	h.Grant.Discard()
	h.ended(err)
	for _, after := range ending.after {
		after()
	}
}

// ended reports the end of the hold.
func (h *Hold) ended(lost error) {
	if h.Options.Ended != nil {
		h.Options.Ended(h, lost)
	}
}

// discard ends a hold whose last share was dropped, in the background.
func (h *Hold) discard() {
	h.stopMonitors()
	h.Grant.Discard()
	at := time.Now()
	h.report(func() { h.Hooks.Discarded(at) })
}

// report calls fn on another goroutine, because the user's providers and loggers may be slow while
// other holds are about to be lost.
func (h *Hold) report(fn func()) {
	if h.Hooks == (noHooks{}) {
		return
	}
	if !callsOf(h.Client).Go(fn) {
		fn() // the client is closed, so a delay harms no other hold
	}
}

// release releases the grant.
func (h *Hold) release(ctx context.Context) error {
	ctx = h.Hooks.Releasing(ctx)
	h.EndMonitors()
	err := h.Grant.Release(ctx)
	h.Hooks.Released(err)
	return err
}

// EndMonitors ends the hold's monitors and waits for them. It is for a caller that dropped the last
// share and ends the grant itself.
func (h *Hold) EndMonitors() {
	h.stopMonitors()
	for _, m := range h.monitors {
		m.running.Wait()
	}
}

func (h *Hold) stopMonitors() {
	for _, m := range h.monitors {
		m.stop()
	}
}

// A Share is one lease's part in a hold. Package lease has it as the Lease, which is this type with the
// methods for users.
type Share struct {
	hold   *Hold // immutable, as are following
	first  bool  // it is the hold's first share
	number int   // how many shares the hold had with it

	released bool                       // guarded by hold.mu, as are the following
	contexts map[*shareContext]struct{} // nil before the first
	onLoss   *onLoss                    // nil if there is none
}

// Reentered notifies the hooks that the share has joined a hold that others have.
func (s *Share) Reentered() { s.hold.Hooks.Reentered(s.number) }

// An onLoss has the functions of [Share.OnLost].
type onLoss struct {
	lose  func(error)
	after func()
}

type shareContext struct{ cancel context.CancelCauseFunc }

// Hold returns the share's hold.
func (s *Share) Hold() *Hold { return s.hold }

// Members returns the shares that New got as members. They must not be changed.
func (s *Share) Members() []*Share { return s.hold.members }

// Err returns the error of the loss, [ErrReleased] after a release, or nil. It notices a deadline
// that has just passed.
func (s *Share) Err() error {
	s.hold.Check()
	s.hold.mu.Lock()
	defer s.hold.mu.Unlock()
	return s.errLocked()
}

func (s *Share) errLocked() error {
	if s.released {
		return releasedError{s.hold}
	}
	return s.hold.err
}

// A releasedError is [ErrReleased] of a lease of the hold.
type releasedError struct{ hold *Hold }

// Error names the lock, and what to do.
func (e releasedError) Error() string {
	return fmt.Sprintf("lease: hold %s: released: acquire it again", errtype.Path(cmp.Or(e.hold.Shown, e.hold.Path)))
}

// Unwrap returns ErrReleased.
func (e releasedError) Unwrap() error { return ErrReleased }

// Lost returns a channel that is closed when the hold is lost.
func (s *Share) Lost() <-chan struct{} {
	h := s.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost == nil {
		h.lost = make(chan struct{})
		if h.err != nil {
			close(h.lost)
		}
	}
	return h.lost
}

// OnLost registers lose and after for the loss, as [Grant.OnLost] does. It reports false if the hold is
// lost or the share is released already. A share has one pair of functions.
func (s *Share) OnLost(lose func(cause error), after func()) bool {
	s.hold.mu.Lock()
	defer s.hold.mu.Unlock()
	if s.errLocked() != nil {
		return false
	}
	s.onLoss = &onLoss{lose, after}
	return true
}

// Context returns a context that is derived from parent and ends with the share. Its cause is the
// loss or [ErrReleased].
func (s *Share) Context(parent context.Context) (context.Context, context.CancelFunc) {
	if s.first {
		parent = s.hold.Hooks.Carry(parent)
	}
	ctx, cancel := context.WithCancelCause(parent)
	sc := &shareContext{cancel}
	mu := &s.hold.mu
	mu.Lock()
	err := s.errLocked()
	if err == nil {
		if s.contexts == nil {
			s.contexts = make(map[*shareContext]struct{})
		}
		s.contexts[sc] = struct{}{}
	}
	mu.Unlock()
	if err != nil {
		cancel(err)
	}
	return ctx, func() {
		mu.Lock()
		delete(s.contexts, sc)
		mu.Unlock()
		cancel(context.Canceled)
	}
}

func (s *Share) endContexts(cause error) {
	s.hold.mu.Lock()
	contexts := s.contexts
	s.contexts = nil
	s.hold.mu.Unlock()
	for sc := range contexts {
		sc.cancel(cause)
	}
}

// Release ends the share and, if it is the last, releases the hold.
func (s *Share) Release(ctx context.Context) error {
	last, err := s.Drop()
	if err != nil || !last {
		return err
	}
	return s.hold.release(ctx)
}

// Discard ends the share and, if it is the last, releases the hold in the background.
func (s *Share) Discard() {
	if last, _ := s.Drop(); last { // after an error there is nothing to discard
		s.hold.discard()
	}
}

// Drop ends the share and reports whether it was the last: then the caller has to release the hold.
// It returns an error if the hold is lost or the share was released before. If other shares remain,
// it does not check for a deadline that has just passed.
func (s *Share) Drop() (last bool, err error) {
	h := s.hold
	h.mu.Lock()
	if len(h.shares) == 1 && h.shares[0] == s {
		h.mu.Unlock()
		h.Check()
		h.mu.Lock()
	}
	if s.released {
		h.mu.Unlock()
		return false, releasedError{h}
	}
	s.released = true
	s.onLoss = nil
	if i := slices.Index(h.shares, s); i >= 0 {
		h.shares = slices.Delete(h.shares, i, i+1)
	}
	err = h.err
	last = len(h.shares) == 0 && err == nil
	inUse := s.contexts != nil
	h.mu.Unlock()
	if inUse {
		s.endContexts(releasedError{h})
	}
	if last {
		h.ended(nil)
	}
	return last, err
}
