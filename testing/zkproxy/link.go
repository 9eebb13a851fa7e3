package zkproxy

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/internal/gate"
	"github.com/docent-go/docent/testing/zkserver"
)

// A link is one client's connection and the connection to the server that goes with
// it.
type link struct {
	proxy  *Proxy             // immutable
	client net.Conn           // immutable
	ctx    context.Context    // ended by cut
	cancel context.CancelFunc // immutable

	session atomic.Pointer[Session] // nil until the server has answered the handshake

	// The claims on replies to come. answer is set before the flows start.
	answer  *fault.Injection // on the handshake's
	replies replies

	mu      sync.Mutex // guards following
	conns   []net.Conn // what cut has to close
	severed bool       // cut has been called
}

func newLink(p *Proxy, client net.Conn) *link {
	ctx, cancel := context.WithCancel(p.ctx)
	return &link{proxy: p, client: client, ctx: ctx, cancel: cancel, conns: []net.Conn{client}}
}

// run is started by Proxy.serve; Close waits for it. It ends when both sides have
// closed their connections, and after cut.
func (l *link) run() {
	defer l.cut()
	defer l.abandon()
	if l.proxy.admission.Pass(l.ctx) != nil {
		return
	}
	fromClient := newSource(l.client)
	first, ok := l.receiveHandshake(fromClient)
	if !ok {
		return
	}
	server, ok := l.dial()
	if !ok {
		return
	}
	l.carry(first, fromClient, server)
}

// dial connects to the server, once the way there isn't blackholed: a server closes
// connections that keep silent, which would end the blackhole early.
func (l *link) dial() (net.Conn, bool) {
	if l.proxy.toServer.Pass(l.ctx) != nil {
		return nil, false
	}
	server, err := l.proxy.transport.dial(l.ctx)
	if err != nil {
		return nil, false // the client learns it by the cut
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.severed {
		_ = server.Close()
		return nil, false
	}
	l.conns = append(l.conns, server)
	return server, true
}

// carry runs both directions and returns when they have ended.
func (l *link) carry(first parcel, fromClient *source, server net.Conn) {
	up := l.newFlow(fromClient, server, l.proxy.toServer)
	down := l.newFlow(newSource(server), l.client, l.proxy.toClient)
	down.from.raw = fromClient.raw

	up.inspect = func(p *piece) *fault.Injection { return l.inspectRequest(fromClient, p) }
	up.finish = func() {
		closeWrite(server)
		// A ZooKeeper client that closes is gone. Others may only have
		// finished asking.
		if !fromClient.raw {
			down.quit()
		}
	}
	answered := false
	down.inspect = func(p *piece) *fault.Injection {
		if !answered {
			answered = true
			return l.inspectAnswer(p.body())
		}
		return l.inspectReply(p.body())
	}
	down.finish = func() { _ = l.client.Close() } // may be closed already

	up.queue <- first
	var loops sync.WaitGroup
	loops.Go(up.readLoop)
	loops.Go(up.writeLoop)
	loops.Go(down.readLoop)
	loops.Go(down.writeLoop)
	loops.Wait()
	up.quit()
	down.quit()
}

func (l *link) newFlow(from *source, to net.Conn, g *gate.Gate) *flow {
	ctx, quit := context.WithCancel(l.ctx)
	return &flow{link: l, from: from, to: to, gate: g, ctx: ctx, quit: quit, queue: make(chan parcel, queueLength)}
}

// inspectRequest logs a request and returns the claim on it. A claim on its reply is
// kept for then. A request that is to be refused doesn't reach the server.
func (l *link) inspectRequest(from *source, p *piece) *fault.Injection {
	frame, ok := zkserver.FrameOf(l.sessionID(), p.body())
	if !ok {
		return nil
	}
	l.proxy.add(frame)
	injection := l.proxy.rules.Match(frame)
	if injection != nil && injection.Action().OnReply() {
		l.replies.expect(frame.Xid, injection)
		if injection.Action() == fault.Refuse {
			from.discardFrame()
			p.bytes = refusedRequest(frame.Xid)
		}
		return nil
	}
	l.replies.expect(frame.Xid, nil)
	return injection
}

// inspectReply returns the claim on a reply or an event.
func (l *link) inspectReply(body []byte) *fault.Injection {
	frame, ok := decodeReply(body, l.sessionID())
	switch {
	case !ok:
		return nil
	case frame.Op == fault.Event:
		return l.proxy.rules.Match(frame)
	}
	return l.replies.take(frame.Xid)
}

// abandon gives back the claims on replies that haven't come.
func (l *link) abandon() {
	l.answer.Cancel()
	l.replies.abandon()
}

func (l *link) sessionID() int64 {
	if s := l.session.Load(); s != nil {
		return s.ID
	}
	return 0
}

// cut closes the connections and so ends run. Further calls do nothing.
func (l *link) cut() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.severed = true
	for _, conn := range l.conns {
		_ = conn.Close() // what is under way is lost: that is what a cut is
	}
	l.conns = nil
}

// replies are the claims on the replies that one connection still waits for. All
// replies are kept, claimed or not: pings share one xid, and several may be under
// way. The zero value is ready to use.
type replies struct {
	mu    sync.Mutex
	byXid map[int32][]*fault.Injection // in the order of the requests
}

// expect adds the reply to request xid, with the claim on it, if any.
func (r *replies) expect(xid int32, injection *fault.Injection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byXid == nil {
		r.byXid = make(map[int32][]*fault.Injection)
	}
	r.byXid[xid] = append(r.byXid[xid], injection)
}

// take removes the first reply to a request xid and returns the claim on it.
func (r *replies) take(xid int32) *fault.Injection {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.byXid[xid]
	switch len(waiting) {
	case 0:
		return nil
	case 1:
		delete(r.byXid, xid)
	default:
		r.byXid[xid] = waiting[1:]
	}
	return waiting[0]
}

// abandon gives all claims back.
func (r *replies) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, waiting := range r.byXid {
		for _, injection := range waiting {
			injection.Cancel()
		}
	}
	r.byXid = nil
}

// decodeReply reads a frame that the server has sent: the xid of the request that
// it answers, or the event that it is.
func decodeReply(body []byte, session int64) (fault.Frame, bool) {
	d := proto.NewDecoder(body)
	f := fault.Frame{Session: session, Xid: d.ReplyHead().Xid}
	if f.Xid == proto.XidEvent {
		f.Op = fault.Event
		d.Int32() // type
		d.Int32() // state
		f.Path = d.String()
	}
	return f, d.Err() == nil
}
