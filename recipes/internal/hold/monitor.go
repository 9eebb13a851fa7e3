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

	mu      sync.Mutex      // guards following
	ctx     context.Context // of the inspections; nil before the first: most holds end before that
	cancel  context.CancelFunc
	own     *framework.Watch
	timer   *time.Timer    // of the next inspection; nil if there is none
	unwatch func() bool    // stops the watch of the next inspection; nil if there is none
	forget  func()         // stops the listening for a break; nil if there is none
	over    bool           // there are no further inspections
	running sync.WaitGroup // the inspection; added to under mu
}

// addMonitor adds a monitor of the znode, which does nothing before its start.
func (h *Hold) addMonitor(z *Znode) {
	m := &h.first.monitor
	if h.monitors == nil {
		h.monitors = h.first.monitors[:0]
	} else {
		m = new(monitor)
	}
	m.hold, m.znode, m.own, m.revocation.hold = h, z, z.Own, h
	h.monitors = append(h.monitors, m)
}

// context returns the context of the inspections, which ends with the monitor.
func (m *monitor) context() context.Context {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx == nil {
		m.ctx, m.cancel = context.WithCancel(context.Background()) // the hold's own life
		if m.over {
			m.cancel()
		}
	}
	return m.ctx
}

// start starts the inspections. If the lock accepts requests to release, the first one is at once.
// Otherwise it comes after ownWatchDelay, or when the watch fires that the hold has from its wait.
func (m *monitor) start() {
	if m.hold.OnSuspend && m == m.hold.monitors[0] && !m.awaitSuspension() {
		return
	}
	if own := m.znode.Own; own != nil {
		m.revocation.observe(m.context(), own) // a request that came while the holder waited
		m.await(own)
		return
	}
	if m.hold.Revoked != nil {
		go m.run() // it ends by itself; EndMonitors waits for it
		return
	}
	m.after(ownWatchDelay)
}

// awaitSuspension has the hold lost at the next break. It reports false if the hold has ended already.
func (m *monitor) awaitSuspension() bool {
	forget := m.hold.Client.OnState(func(change framework.StateChange) {
		if change.To != framework.Connected {
			m.hold.lose(ErrSuspended)
		}
	})
	m.mu.Lock()
	over := m.over
	m.forget = forget
	m.mu.Unlock()
	if over {
		forget()
		return false
	}
	if z := m.znode; z.Session.Breaks() != z.Breaks { // it broke before the client was listened to
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
		m.timer = time.AfterFunc(delay, m.run)
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
	m.unwatch = own.AfterFire(m.run)
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
	m.timer, m.unwatch = nil, nil
	m.running.Add(1)
	m.mu.Unlock()
	defer m.running.Done()

	next, err := m.znode.Client.Watch(m.context(), m.znode.Path, framework.WatchData)
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
		m.revocation.observe(m.context(), next)
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
	own, timer, unwatch, forget, cancel := m.own, m.timer, m.unwatch, m.forget, m.cancel
	m.over, m.own, m.timer, m.unwatch, m.forget = true, nil, nil, nil, nil
	m.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	if timer != nil {
		timer.Stop()
	}
	if unwatch != nil {
		unwatch()
	}
	if own != nil {
		own.Close()
	}
	if forget != nil {
		forget()
	}
}

// maxInspections is the maximum number of a client's inspections that run at one time. After a
// reconnection all watches of all holds fire at once. With many holds, their reads would delay the
// heartbeat that follows a reconnection, and so cost the holds their session.
const maxInspections = 64

// inspections run the inspections of one client's monitors, on the goroutines that ask for them.
type inspections struct {
	mu      sync.Mutex // guards following
	running int
	queue   []*monitor // not empty only while maxInspections run
}

func inspectionsOf(c *framework.Client) *inspections {
	return framework.Shared(c, func() *inspections { return new(inspections) })
}

// run runs m's inspection, and then those that wait. If maxInspections run already, it returns at
// once, and one of their goroutines runs m's.
func (i *inspections) run(m *monitor) {
	if !i.begin(m) {
		return
	}
	for m != nil {
		m.inspect()
		m = i.next()
	}
}

// begin reports whether m's inspection may run now. Otherwise it is queued.
func (i *inspections) begin(m *monitor) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.running == maxInspections {
		i.queue = append(i.queue, m)
		return false
	}
	i.running++
	return true
}

// next takes a monitor from the queue. It returns nil if none waits: then the goroutine ends.
func (i *inspections) next() *monitor {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.queue) == 0 {
		i.running--
		i.queue = nil
		return nil
	}
	m := i.queue[0]
	i.queue[0] = nil // append moves the rest when it runs out of space
	i.queue = i.queue[1:]
	return m
}

// A Znode is a granted ephemeral znode, in a session that is bound to its deadline. Its owner
// deletes the znode and ends the session hold.
type Znode struct {
	Client  *framework.Client // bound to the session
	Session *framework.SessionHold
	Path    string
	Stat    framework.Stat
	Breaks  int64            // of the connection at the grant: see [framework.SessionHold.Breaks]
	Own     *framework.Watch // a watch on the znode; nil if the attempt did not wait
}

// Discard deletes the znode in the background, but not one that another client has made at its path since.
func (z *Znode) Discard(opts ...framework.DeleteOption) {
	z.Client.Discard(z.Path, append(opts, framework.CreatedBy(z.Stat.Czxid))...)
}

// Node returns the znode's path.
func (z *Znode) Node() string { return z.Path }

// Fence returns the czxid.
func (z *Znode) Fence() int64 { return z.Stat.Czxid }

// Guards returns a check that the znode exists.
func (z *Znode) Guards() []framework.TxnOp {
	return []framework.TxnOp{framework.OpCheck(z.Path, framework.AnyVersion).In(z.Client)}
}

// Deadline returns the deadline of the session.
func (z *Znode) Deadline() time.Time { return z.Session.Deadline() }

// Err returns why the session is over, or nil.
func (z *Znode) Err() error { return z.Session.Err() }

// OnLost registers notify and after for the session's end.
func (z *Znode) OnLost(notify func(error), after func()) {
	z.Session.OnLoss(notify, after)
}
