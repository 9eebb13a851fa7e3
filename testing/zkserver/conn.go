package zkserver

import (
	"bufio"
	"context"
	"net"
	"time"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/zkversion"
	"github.com/docent-go/docent/testing/fault"
)

// inboxSize is how many requests a connection takes in before it makes the client
// wait. It lets a client pipeline as freely as ZooKeeper does, which reads up to a
// thousand ahead.
const inboxSize = 128

// A conn is a client's connection. Three goroutines serve it: one reads requests,
// one carries them out in order, one writes. None of them holds Server.mu while it
// waits for the network, a fault rule or another server.
type conn struct {
	server *Server   // immutable
	front  *Frontend // immutable
	net    net.Conn  // immutable
	ip     string    // immutable; of the client
	since  time.Time // immutable

	cut      context.Context // ends when the server closes the connection
	cutNow   context.CancelFunc
	alive    context.Context // ends when either side closes it
	aliveEnd context.CancelFunc

	inbox chan arrival // closed by the reader
	out   *outbox

	// Guarded by Server.mu.
	session   *session // nil before the handshake
	ids       []authID
	injection *fault.Injection // the fault for the next reply
}

// An arrival is a frame that a client has sent.
type arrival struct {
	connect   *proto.ConnectRequest // nil for a request
	req       request
	injection *fault.Injection
	at        time.Time
	silent    bool // it came while the server was frozen and was no sign of life yet
}

// serve starts the connection's goroutines; Server.Close waits for them. It reports
// false, having closed nc, if the front end refuses the connection.
func (f *Frontend) serve(nc net.Conn) bool {
	c := &conn{
		server: f.server,
		front:  f,
		net:    nc,
		ip:     clientIP(nc),
		since:  time.Now(),
		inbox:  make(chan arrival, inboxSize),
		out:    newOutbox(),
	}
	c.ids = []authID{{scheme: "ip", id: c.ip}}
	c.cut, c.cutNow = context.WithCancel(context.Background())
	c.alive, c.aliveEnd = context.WithCancel(c.cut)
	s := f.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if !f.add(c) {
		c.kill()
		return false
	}
	s.running.Go(c.readLoop)
	s.running.Go(c.workLoop)
	s.running.Go(c.writeLoop)
	return true
}

// kill closes the connection at once: what has not been carried out or written is
// lost. It may be called more than once, and with or without Server.mu.
func (c *conn) kill() {
	c.cutNow()
	c.net.Close()
}

// hangUp closes a connection that the client has closed, or that is finished. What
// the client has sent before is still carried out.
func (c *conn) hangUp() {
	c.aliveEnd()
	c.net.Close()
}

// finish closes the connection once everything before has been written.
func (c *conn) finish() { c.out.push(outgoing{last: true}) }

// reply sends the answer to the request that is being served. It needs Server.mu, as
// an answer's place among the events matters.
func (c *conn) reply(frame []byte) {
	c.send(frame, c.injection)
	c.injection = nil
}

// send sends an answer. It needs Server.mu.
func (c *conn) send(frame []byte, injection *fault.Injection) {
	c.out.push(outgoing{frame: frame, injection: injection, at: time.Now()})
}

// dropInjection gives back the fault of a reply that is not sent. It needs Server.mu.
func (c *conn) dropInjection() {
	c.injection.Cancel()
	c.injection = nil
}

// noZxid is the zxid in the head of an event that says of no change, and of all events before
// ZooKeeper 3.9.
const noZxid = -1

// enqueueEvent sends an event of the change with the zxid, at once or as the fault rules will. It needs
// Server.mu.
func (c *conn) enqueueEvent(zxid int64, path string, event eventType) {
	if !c.server.config.has(zkversion.EventsHaveZxid) {
		zxid = noZxid
	}
	injection := c.server.rules.Match(fault.Frame{Session: c.session.id, Xid: -1, Op: fault.Event, Path: path})
	c.out.push(outgoing{frame: eventFrame(zxid, path, event), injection: injection, at: time.Now()})
}

// complete is called when the front end has applied what this connection asked for.
func (c *conn) complete(m *commit, zxid int64) {
	m.delivered = true
	c.front.forgetPending(m)
	if m.done != nil {
		close(m.done)
	}
	if m.opened != nil {
		c.session = m.opened
		c.front.attach[c.session.id] = c
	}
	if m.sync != nil {
		m.reply = syncReply(m.sync, zxid)
	}
	if m.moved {
		m.injection.Cancel()
	} else {
		c.send(m.reply, m.injection)
	}
	m.injection = nil
	if m.ended != 0 || m.moved {
		c.finish()
	}
}

func clientIP(nc net.Conn) string {
	if tcp, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	return "127.0.0.1"
}

// readLoop takes in what the client sends, also while the server is frozen, as a
// kernel would. It is started by serve, ends when either side closes the
// connection or the client sends what is no frame, and Server.Close waits for it.
func (c *conn) readLoop() {
	defer close(c.inbox)
	r := bufio.NewReader(c.net)
	if !c.readHandshake(r) {
		return
	}
	defer c.hangUp()
	for {
		frame, err := proto.ReadFrame(r, c.server.config.packetLimit)
		if err != nil {
			return
		}
		req, err := parseRequest(frame)
		if err != nil || !c.push(c.arrived(req)) {
			return
		}
	}
}

// readHandshake takes in the first frame, or answers a four-letter word. It reports
// whether requests follow.
func (c *conn) readHandshake(r *bufio.Reader) bool {
	word, err := r.Peek(4)
	if err != nil {
		c.hangUp()
		return false
	}
	if answer := c.server.fourLetter(string(word), c.front); answer != "" {
		c.out.push(outgoing{frame: []byte(answer)})
		c.finish()
		return false
	}
	frame, err := proto.ReadFrame(r, c.server.config.packetLimit)
	connect, malformed := parseConnect(frame)
	if err != nil || malformed != nil {
		c.hangUp()
		return false
	}
	injection := c.server.rules.Match(connectFrame(&connect))
	return c.push(arrival{connect: &connect, injection: injection, at: time.Now()})
}

// arrived notes that the client is alive, and what fault rules say of the request.
func (c *conn) arrived(req request) arrival {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	a := arrival{req: req, at: time.Now()}
	session := int64(0)
	if c.session != nil {
		session = c.session.id
		if a.silent = c.front.frozen; !a.silent {
			s.touch(c.session, c.front)
		}
	}
	a.injection = s.rules.Match(req.faultFrame(session))
	return a
}

func (c *conn) push(a arrival) bool {
	select {
	case c.inbox <- a:
		return true
	case <-c.alive.Done():
		a.injection.Cancel()
		return false
	}
}

// parseConnect decodes a client's handshake.
func parseConnect(frame []byte) (proto.ConnectRequest, error) {
	d := proto.NewDecoder(frame)
	r := d.ConnectRequest()
	return r, d.End()
}

// connectFrame returns what fault rules are matched against.
func connectFrame(r *proto.ConnectRequest) fault.Frame {
	return fault.Frame{Session: r.Session, Op: fault.Connect}
}
