package hold

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/cause"
)

// Options describe a hold.
type Options struct {
	Client *framework.Client
	Path   string // of the lock, as its user gave it
	Grant  Grant
	Hooks  Hooks // [NoHooks] for no telemetry

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
	monitors []*monitor // one for each znode

	mu     sync.Mutex // guards following; never held while code outside is called
	shares []*Share   // in the order of their joining; empty once the hold has ended
	leased bool       // it has had a share
	lost   chan struct{}
	err    error     // set once, before lost is closed
	ending *lostHold // what finish has to do; nil before the loss, and after finish
}

// A lostHold is what is left to do for a hold that is lost and whose users know.
type lostHold struct {
	at    time.Time
	ends  bool     // the hooks are still to be notified
	after []func() // of the shares
}

// New returns the first share of a new hold. members are the shares of a Multi's members. If the grant
// is over already, the hold is lost.
func New(o Options, members ...*Share) *Share {
	h := &Hold{Options: o}
	first := h.Join()
	first.members = members
	if o.Znode != nil {
		for _, z := range append([]*Znode{o.Znode}, o.More...) {
			h.monitors = append(h.monitors, newMonitor(h, z))
		}
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
	s := &Share{hold: h, first: !h.leased}
	h.leased = true
	h.shares = append(h.shares, s)
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
// nothing may block: see package loss. The rest is left to finish.
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
	ending := &lostHold{at: time.Now(), ends: h.Hooks.Ends()}
	var pass []func(error)
	for _, s := range shares {
		if s.onLost != nil {
			pass = append(pass, s.onLost)
			ending.after = append(ending.after, s.afterLost)
			s.onLost, s.afterLost = nil, nil
		}
	}
	h.mu.Unlock()
	defer func() { // also if a context of the user's panics
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
	if ending.ends {
		h.report(func() { h.Hooks.Lost(err, ending.at) })
	}
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
	if h.Hooks.Ends() {
		at := time.Now()
		h.report(func() { h.Hooks.Discarded(at) })
	}
}

// report calls fn on another goroutine, because the user's providers and loggers may be slow while
// other holds are about to be lost.
func (h *Hold) report(fn func()) {
	if !callsOf(h.Client).Go(fn) {
		fn() // the client is closed, so a delay harms no other hold
	}
}

// release releases the grant.
func (h *Hold) release(ctx context.Context) error {
	ctx = h.Hooks.Releasing(ctx)
	h.EndMonitors()
	err := h.Grant.Release(cause.Inside(ctx))
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
