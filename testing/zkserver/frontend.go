package zkserver

import (
	"fmt"
	"net"
	"slices"
	"time"
)

// A Frontend is one of the servers that clients connect to. All front ends of a
// [Server] serve the same nodes and sessions; each has its own connections and
// watches, and may be behind the others.
//
// All methods may be called concurrently.
type Frontend struct {
	server *Server // immutable
	number int     // immutable, from 0

	// The rest is guarded by server.mu.

	conns   map[*conn]struct{}
	attach  map[int64]*conn // by session; the connection that opened or resumed it last
	watches *watches
	pending map[int64][]*commit // by session; what its requests have led to and is yet to be applied here

	frozen, isolated, held, refusing, dead bool
	lag                                    time.Duration
	changed                                chan struct{}  // closed and replaced when one of these changes
	listeners                              []net.Listener // closed while it is dead

	// With a leader among the front ends: see election.go.

	looking bool               // it has no leader, and serves no client but by readOnly
	reign   map[int64]*session // of a replaced leader that doesn't know it: its sessions; else nil
	alone   bool               // it is without its leader, or leads without a quorum
	due     time.Time          // when it then closes its connections
	overdue bool               // that moment has passed while it was frozen
	limit   *time.Timer        // runs to due

	readOnly map[int64]*session // its local sessions while it serves reads only; else nil
	lone     *time.Timer        // runs until it does

	own     *tree      // the front end's own state while it may be behind, else nil
	backlog []*delayed // decisions yet to be applied here, oldest first
	timer   *time.Timer
}

// A delayed is a decision that waits in a front end's backlog.
type delayed struct {
	commit *commit
	due    time.Time
}

func newFrontend(s *Server, number int) *Frontend {
	f := &Frontend{
		server:  s,
		number:  number,
		conns:   map[*conn]struct{}{},
		attach:  map[int64]*conn{},
		watches: newWatches(&s.config),
		pending: map[int64][]*commit{},
		changed: make(chan struct{}),
	}
	f.timer, f.limit, f.lone = newTimer(f.backlogDue), newTimer(f.limitPassed), newTimer(f.lonePassed)
	return f
}

// Addr returns the front end's address for [Server.Dial]. It is an IP literal, so
// that clients that resolve names need no resolver, from a range that is kept for
// documentation.
func (f *Frontend) Addr() string { return fmt.Sprintf("192.0.2.%d:2181", f.number+1) }

// Freeze stops the front end as SIGSTOP does a process. It accepts connections and what clients
// send, answers nothing, and receives no commit. The other front ends expire the sessions whose
// clients stay. Thaw continues it where it was.
func (f *Frontend) Freeze() {
	f.change(func() {
		f.frozen = true
		f.server.forgetTouches(f)
	})
}

// Thaw ends what Freeze began. The front end now answers what clients have sent meanwhile.
func (f *Frontend) Thaw() { f.change(func() { f.frozen = false }) }

// Isolate cuts the front end off from the leader but not from its clients. It answers reads and
// pings from a state that grows old. Writes, syncs and new or resumed sessions wait. Its clients'
// signs of life no longer reach the leader, so their sessions expire at the others. Isolate lasts
// until Heal. A real server closes its connections after syncLimit ticks, which Cut and Refuse do
// here.
//
// With [WithLeader], the front end does that by itself. If it leads, it also answers its clients'
// syncs and the resumption of sessions, from its memory, and the others elect another leader.
func (f *Frontend) Isolate() {
	f.change(func() {
		f.isolated = true
		f.server.forgetTouches(f)
	})
}

// Heal ends what Isolate began. The front end now carries out the requests that waited, each
// client's in order. It does so also for clients that have gone, unless their session has ended or
// moved.
func (f *Frontend) Heal() { f.change(func() { f.isolated = false }) }

// Hold makes the front end lag: it applies no commit until CatchUp, so its reads
// are answered from an old state, and its clients' writes, although carried out,
// are not answered. Its clients stay alive. A front end that leads doesn't lag.
func (f *Frontend) Hold() { f.change(func() { f.held = true }) }

// LagBy makes the front end apply each commit d after the leader has decided it.
// It panics if d is negative.
func (f *Frontend) LagBy(d time.Duration) {
	if d < 0 {
		panic(fmt.Sprintf("zkserver: Frontend.LagBy: lag %v: must be at least 0", d))
	}
	f.change(func() { f.lag = d })
}

// CatchUp ends what Hold and LagBy began: the front end is up to date when CatchUp
// returns, if it is neither frozen nor isolated and has a leader.
func (f *Frontend) CatchUp() {
	f.change(func() {
		f.held, f.lag = false, 0
		for _, d := range f.backlog {
			d.due = time.Time{}
		}
	})
}

// Refuse makes the front end refuse new connections. Those that stand go on.
func (f *Frontend) Refuse() { f.change(func() { f.refusing = true }) }

// Accept ends what Refuse began.
func (f *Frontend) Accept() { f.change(func() { f.refusing = false }) }

// Kill ends the front end as SIGKILL does a process. Its connections are closed, its clients'
// sessions live on, and new connections are refused, by TCP too. With [WithLeader], the others
// notice the end of a leader at once, unless it is isolated. It lasts until Restart.
func (f *Frontend) Kill() {
	f.change(func() {
		f.frozen = false // its peers see a stopped process end
		f.server.forgetTouches(f)
		if f.server.hasRoles() {
			f.look()
		}
		f.dead, f.readOnly = true, nil
		f.lone.Stop()
		f.restart()
		for _, l := range f.listeners {
			l.Close()
		}
	})
}

// Restart ends what Kill began. The front end now has what was committed meanwhile, if it has a
// leader, and accepts TCP connections at the same addresses as before. The error is that of
// net.Listen, and the front end is still dead then, or net.ErrClosed after [Server.Close]. Restart
// does nothing if the front end is not dead.
func (f *Frontend) Restart() error {
	s := f.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("zkserver: restart: %w", net.ErrClosed)
	}
	if !f.dead {
		return nil
	}
	var listeners []net.Listener
	for _, before := range f.listeners {
		l, err := net.Listen("tcp", before.Addr().String())
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			return fmt.Errorf("zkserver: restart: %w", err)
		}
		listeners = append(listeners, l)
	}
	f.dead, f.listeners = false, nil
	for _, l := range listeners {
		f.listen(l)
	}
	if f.looking {
		f.awaitReadOnly()
	}
	s.reconsider()
	return nil
}

// Cut closes every connection of the front end. Their sessions live on.
func (f *Frontend) Cut() {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	f.killAll()
}

func (f *Frontend) killAll() {
	for c := range f.conns {
		c.kill()
	}
}

// Zxid returns the zxid of the last transaction that the front end has applied.
func (f *Frontend) Zxid() int64 {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	return f.view().zxid
}

// change makes a change to what the front end may do, and has it do what follows.
func (f *Frontend) change(fn func()) {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	fn()
	f.server.reconsider()
}

// signal wakes those who wait for the front end to change.
func (f *Frontend) signal() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// deaf reports whether decisions don't arrive.
func (f *Frontend) deaf() bool {
	return !f.reaches() || f.looking || f.reign != nil || f.held && !f.leads()
}

// slow reports whether decisions arrive late. They don't at a leader, which makes them.
func (f *Frontend) slow() bool { return f.lag > 0 && !f.leads() }

// settle applies what is due. A front end has a state of its own only while that may be behind,
// and settle maintains this. It needs server.mu.
func (f *Frontend) settle() {
	now := time.Now()
	for !f.deaf() && len(f.backlog) > 0 && (f.leads() || !f.backlog[0].due.After(now)) {
		m := f.backlog[0].commit
		f.backlog = f.backlog[1:]
		f.own.apply(m.txn)
		f.finish(m)
	}
	switch {
	case f.deaf() || f.slow() || len(f.backlog) > 0:
		if f.own == nil {
			f.own = f.server.tree.clone()
		}
	default:
		f.own = nil
	}
	if !f.deaf() && len(f.backlog) > 0 {
		f.timer.Reset(f.backlog[0].due.Sub(now))
	}
}

// deliver hands the front end a decision that the leader's tree has applied.
func (f *Frontend) deliver(m *commit) {
	if f.own == nil {
		f.finish(m)
		return
	}
	f.backlog = append(f.backlog, &delayed{commit: m, due: time.Now().Add(f.lag)})
	f.settle()
}

// backlogDue is called by the front end's timer, on a goroutine of its own.
func (f *Frontend) backlogDue() {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	if !f.server.closed {
		f.settle()
	}
}

// finish tells the front end's clients of a decision: first the watches, then the
// one who asked for it.
func (f *Frontend) finish(m *commit) {
	for i := range m.txn.changes {
		f.watches.fire(m.txn.zxid, &m.txn.changes[i])
	}
	if c := f.attach[m.ended]; m.ended != 0 && c != nil && c != m.origin {
		c.finish()
	}
	if m.origin != nil && m.origin.front == f {
		m.origin.complete(m, f.view().zxid)
	}
}

// view returns the state from which the front end answers.
func (f *Frontend) view() *tree {
	if f.own != nil {
		return f.own
	}
	return f.server.tree
}

// forgetPending drops a commit that the front end has applied.
func (f *Frontend) forgetPending(m *commit) {
	if m.origin.session == nil {
		return // it begins the session
	}
	id := m.origin.session.id
	if f.pending[id] = slices.DeleteFunc(f.pending[id], func(p *commit) bool { return p == m }); len(f.pending[id]) == 0 {
		delete(f.pending, id)
	}
}

// restart closes every connection, and forgets what their requests have led to.
func (f *Frontend) restart() {
	f.killAll()
	clear(f.pending)
}

// add attaches a connection, and reports false if it is refused.
func (f *Frontend) add(c *conn) bool {
	if f.server.closed || f.refusing || f.dead || f.looking && f.readOnly == nil {
		return false
	}
	f.conns[c] = struct{}{}
	return true
}

// remove detaches a connection that has been closed.
func (f *Frontend) remove(c *conn) {
	f.watches.removeConn(c)
	delete(f.conns, c)
	if c.session != nil && f.attach[c.session.id] == c {
		delete(f.attach, c.session.id)
	}
}
