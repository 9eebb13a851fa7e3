package zkserver

import (
	"bufio"
	"time"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
)

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
