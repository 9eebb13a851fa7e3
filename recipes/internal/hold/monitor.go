package hold

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
)

const (
	// ownWatchDelay is how long a znode that was granted without a wait is held before it is
	// watched. The watch notices a deletion by another client. A shorter hold saves the request.
	ownWatchDelay = 50 * time.Millisecond
	ownWatchRetry = time.Second // after an error, for example if the ACL forbids to read
)

// A monitor watches a znode of a hold. It has no goroutine while it is idle: a timer or the watch
// calls run. The session reports its own end to the hold.
type monitor struct {
	hold       *Hold
	znode      *Znode
	revocation revocation

	ctx    context.Context // of the inspections; ends with the monitor
	cancel context.CancelFunc

	mu      sync.Mutex // guards following
	own     *framework.Watch
	trigger func() bool    // stops the timer or watch of the next inspection; nil while one runs
	over    bool           // there are no further inspections
	running sync.WaitGroup // the inspection; added to under mu
}

func newMonitor(h *Hold, z *Znode) *monitor {
	m := &monitor{hold: h, znode: z, own: z.Own}
	m.revocation.hold = h
	m.ctx, m.cancel = context.WithCancel(context.Background()) // the hold's own life
	return m
}

// start starts the inspections. If the lock accepts requests to release, the first one is at once.
// Otherwise it comes after ownWatchDelay, or when the watch fires that the hold has from its wait.
func (m *monitor) start() {
	if m.hold.OnSuspend && !m.awaitSuspension() {
		return
	}
	if own := m.znode.Own; own != nil {
		m.revocation.observe(m.ctx, own) // a request that came while the holder waited
		m.await(own)
		return
	}
	if m.hold.Revoked != nil {
		go m.run() // it ends by itself; EndMonitors waits for it
		return
	}
	m.after(ownWatchDelay)
}

// awaitSuspension registers the hold to be lost at the next break. It reports false if the hold has
// ended already.
func (m *monitor) awaitSuspension() bool {
	suspensions := suspensionsOf(m.hold.Client)
	m.mu.Lock()
	over := m.over
	if !over {
		suspensions.add(m.hold)
	}
	m.mu.Unlock()
	if over {
		return false
	}
	if z := m.znode; z.Session.Breaks() != z.Breaks { // it broke before the hold was registered
		m.hold.lose(ErrSuspended)
		return false
	}
	return true
}

// after starts an inspection after the delay.
func (m *monitor) after(delay time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.over {
		m.trigger = time.AfterFunc(delay, m.run).Stop
	}
}

// await starts an inspection when the watch fires.
func (m *monitor) await(own *framework.Watch) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		own.Close()
		return
	}
	m.own = own
	m.trigger = own.AfterFire(m.run)
}

// run runs an inspection, soon if many others of the client run. A timer or a watch starts it.
func (m *monitor) run() { inspectionsOf(m.hold.Client).run(m) }

// inspect watches the znode again and checks its state. It ends by itself, early if the monitor
// stops; EndMonitors waits for it.
func (m *monitor) inspect() {
	m.mu.Lock()
	if m.over {
		m.mu.Unlock()
		return
	}
	m.trigger = nil
	m.running.Add(1)
	m.mu.Unlock()
	defer m.running.Done()

	next, err := m.znode.Client.Watch(m.ctx, m.znode.Path, framework.WatchData)
	switch {
	case errors.Is(err, framework.ErrNoNode):
		m.hold.lose(ErrNodeDeleted)
	case err != nil:
		m.after(ownWatchRetry) // the own watch stays, because its event is not handled yet
	case !m.granted(next):
		next.Close()
		m.hold.lose(ErrNodeDeleted)
	default:
		m.replace(next)
		m.revocation.observe(m.ctx, next)
		m.await(next)
	}
}

// granted reports whether w watches the granted znode, and not another one that a client created at
// its path.
func (m *monitor) granted(w *framework.Watch) bool {
	st, _ := w.Stat()
	return st.Czxid == m.znode.Stat.Czxid
}

// replace closes the watch that has fired and keeps next.
func (m *monitor) replace(next *framework.Watch) {
	m.mu.Lock()
	old := m.own
	m.own = next
	m.mu.Unlock()
	if old != nil {
		old.Close()
	}
}

// untouched reports whether the znode is unchanged, as far as is known.
func (m *monitor) untouched() bool {
	m.mu.Lock()
	own := m.own
	m.mu.Unlock()
	if own == nil {
		return true
	}
	st, _ := own.Stat()
	return own.Event() == 0 && st.Version == 0
}

// stop ends the monitor. It does not wait for an inspection, because an
// inspection may call it.
func (m *monitor) stop() {
	m.mu.Lock()
	own, trigger := m.own, m.trigger
	m.over, m.own, m.trigger = true, nil, nil
	m.mu.Unlock()
	m.cancel()
	if trigger != nil {
		trigger()
	}
	if own != nil {
		own.Close()
	}
	if m.hold.OnSuspend {
		suspensionsOf(m.hold.Client).remove(m.hold)
	}
}
