package hostile_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/zkserver"
)

// A server is an embedded ZooKeeper whose frames to the client under test are changed as the script
// says.
type server struct {
	*zkserver.Server
	script *script
	rate   int // of 256 frames, how many are changed

	mu      sync.Mutex // guards following
	quiet   bool       // nothing is changed any more
	frames  int
	changed int
	mute    map[proto.Opcode]bool
	paths   []string // of requests
	bodies  [][]byte // of some earlier replies
}

// maxKept bounds the paths and bodies that are kept.
const maxKept = 16

func (srv *server) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := srv.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, server: srv, asked: make(map[int32]proto.Opcode)}, nil
}

// calm ends all changes.
func (srv *server) calm() {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.quiet = true
	clear(srv.mute)
}

// silence makes the server never answer requests with the opcode, but pings and all others.
func (srv *server) silence(opcode proto.Opcode) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.mute[opcode] = true
	srv.changed++
}

// harmed returns how many frames were changed.
func (srv *server) harmed() int {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.changed
}

// A conn is the client's end of a connection to a server.
type conn struct {
	net.Conn
	server *server

	mu    sync.Mutex // guards following
	asked map[int32]proto.Opcode

	// only for Read
	greeted bool
	unread  []byte
	late    []byte // a frame that follows the next one
	ends    bool   // behind unread
}

// Write notes what the client asks. The client writes one frame at a time.
func (c *conn) Write(p []byte) (int, error) {
	d := proto.NewDecoder(p)
	d.Int32()
	xid, opcode := d.Int32(), proto.Opcode(d.Int32())
	path := d.Path()
	c.mu.Lock()
	c.asked[xid] = opcode
	c.mu.Unlock()
	if d.Err() == nil && len(path) > 0 && path[0] == '/' {
		c.server.mu.Lock()
		c.server.paths = append(c.server.paths, path)
		c.server.paths = c.server.paths[max(0, len(c.server.paths)-maxKept):]
		c.server.mu.Unlock()
	}
	return c.Conn.Write(p)
}

func (c *conn) Read(p []byte) (int, error) {
	for len(c.unread) == 0 {
		if c.ends {
			_ = c.Close() // as a server that drops the connection
			return 0, io.EOF
		}
		body, err := proto.ReadFrame(c.Conn, 64<<20)
		if err != nil {
			return 0, err
		}
		late := c.late
		c.late = nil
		c.unread = slices.Concat(c.deliver(framed(body)), late)
	}
	n := copy(p, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

// deliver returns what the client gets in place of the frame.
func (c *conn) deliver(frame []byte) []byte {
	greeting := !c.greeted
	c.greeted = true
	d := proto.NewDecoder(frame[proto.LengthSize:])
	c.mu.Lock()
	opcode := c.asked[d.Int32()]
	c.mu.Unlock()
	srv := c.server
	srv.mu.Lock()
	srv.frames++
	quiet, mute, many := srv.quiet, srv.mute[opcode] && !greeting, srv.frames >= mostFrames
	srv.mu.Unlock()
	if many {
		time.Sleep(time.Second) // so that virtual time goes on, and the run ends
	}
	if mute {
		return nil
	}
	roll, ok := srv.script.next()
	if quiet || !ok || int(roll) >= srv.rate {
		srv.keep(frame, greeting)
		return frame
	}
	kind := srv.script.below(changes)
	srv.mu.Lock()
	srv.changed++
	srv.mu.Unlock()
	return c.change(kind, frame, greeting, opcode)
}

// keep keeps the body of a reply, for another reply.
func (srv *server) keep(frame []byte, greeting bool) {
	const head = proto.LengthSize + proto.ReplyHeadSize
	if greeting || len(frame) <= head {
		return
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.bodies = append(srv.bodies, slices.Clone(frame[head:]))
	srv.bodies = srv.bodies[max(0, len(srv.bodies)-maxKept):]
}

// The kinds of changes of a frame.
const (
	changeField = iota // first, and several times as likely
	changeField2
	changeField3
	changeField4
	changeCode
	changeXid
	changeBody
	changeLength
	cutShort
	extended
	flipped
	twice
	dropped
	swapped
	afterEvent
	afterEvent2
	afterEvents
	afterGarbage
	delayed
	halfThenClosed
	muted
	changes // how many
)

// change returns what the client gets in place of the frame.
func (c *conn) change(kind int, frame []byte, greeting bool, opcode proto.Opcode) []byte {
	s, head := c.server.script, proto.LengthSize+proto.ReplyHeadSize
	isReply := !greeting && len(frame) >= head
	switch kind {
	case changeCode:
		if isReply {
			frame = slices.Clone(frame)
			binary.BigEndian.PutUint32(frame[head-4:], uint32(pick(s, codes)))
			if s.below(2) == 0 { // as a server does: without a body
				return framed(frame[proto.LengthSize:head])
			}
		}
		return frame
	case changeXid:
		return c.otherXid(frame)
	case changeBody:
		if other := c.server.earlierBody(); isReply && other != nil {
			return framed(slices.Concat(frame[proto.LengthSize:head], other))
		}
		return frame
	case changeLength:
		return append(binary.BigEndian.AppendUint32(nil, uint32(pick(s, extremes32))), frame[proto.LengthSize:]...)
	case cutShort:
		return framed(frame[proto.LengthSize : proto.LengthSize+s.below(len(frame)-proto.LengthSize+1)])
	case extended:
		return framed(append(slices.Clone(frame[proto.LengthSize:]), make([]byte, 1+s.below(300))...))
	case flipped:
		frame = slices.Clone(frame)
		frame[s.below(len(frame))] ^= byte(1 << s.below(8))
		return frame
	case twice:
		return slices.Concat(frame, frame)
	case dropped:
		return nil
	case swapped:
		c.late = frame
		return nil
	case afterEvent, afterEvent2:
		return slices.Concat(c.server.anyEvent(), frame)
	case afterEvents:
		var all []byte
		for range 1 + s.below(60) {
			all = append(all, c.server.anyEvent()...)
		}
		return append(all, frame...)
	case afterGarbage:
		garbage := make([]byte, 1+s.below(40))
		for i := range garbage {
			garbage[i] = byte(s.below(256))
		}
		return slices.Concat(garbage, frame)
	case delayed:
		time.Sleep(s.upTo(3 * time.Second)) // virtual; the server behaves as one that is busy
		return frame
	case halfThenClosed:
		c.ends = true
		return frame[:1+s.below(len(frame)-1)]
	case muted:
		c.server.silence(opcode)
		return nil
	}
	return mutateField(s, frame, greeting)
}

// otherXid returns the frame with the number of another request, or of none.
func (c *conn) otherXid(frame []byte) []byte {
	s := c.server.script
	c.mu.Lock()
	xids := []int32{proto.XidEvent, proto.XidPing, proto.XidAuth, 0, -8, -1000, -1001, 1 << 30}
	for xid := range c.asked {
		if xids = append(xids, xid); len(xids) > 3*maxKept {
			break
		}
	}
	c.mu.Unlock()
	frame = slices.Clone(frame)
	binary.BigEndian.PutUint32(frame[proto.LengthSize:], uint32(pick(s, xids)))
	return frame
}

// earlierBody returns the body of an earlier reply, or nil.
func (srv *server) earlierBody() []byte {
	n := srv.script.below(maxKept)
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if len(srv.bodies) == 0 {
		return nil
	}
	return srv.bodies[n%len(srv.bodies)]
}

// anyEvent returns a watch event, mostly one that some watch of the client may wait for.
func (srv *server) anyEvent() []byte {
	s := srv.script
	kind, state := int32(1+s.below(4)), int32(3)
	if s.below(8) == 0 {
		kind, state = pick(s, extremes32), pick(s, extremes32)
	}
	n, form := s.below(maxKept), s.below(8)
	srv.mu.Lock()
	path := "/"
	if len(srv.paths) > 0 {
		path = srv.paths[n%len(srv.paths)]
	}
	srv.mu.Unlock()
	switch form {
	case 0:
		path = pick(s, hostileTexts)
	case 1:
		path = path[1:] // without its slash
	case 2:
		path += "/" + pick(s, hostileTexts)
	}
	return eventFrame(kind, state, path)
}
