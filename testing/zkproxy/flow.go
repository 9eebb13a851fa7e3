package zkproxy

import (
	"context"
	"net"
	"time"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/internal/gate"
)

// queueLength is how many pieces may be under way in one direction of a connection. With 100 ms of
// added latency that allows 20 000 frames a second, more than a client makes. Of the largest
// pieces it is 64 MiB.
const queueLength = 1024

// A parcel is a piece under way, or the end of the stream.
type parcel struct {
	piece
	due       time.Time        // when it may be delivered at the earliest
	injection *fault.Injection // its fault, or nil
	end       bool             // the sender has closed the connection; no bytes
}

// A flow is one direction of a link. Its two loops pass parcels through the queue,
// so that reading never waits for a delivery that is held up.
type flow struct {
	link *link
	from *source
	to   net.Conn
	gate *gate.Gate
	// ctx ends when nothing that comes can be delivered any more: the loops go on,
	// and discard.
	ctx   context.Context
	quit  context.CancelFunc
	queue chan parcel // closed by readLoop
	idle  time.Time   // when a limited bandwidth has delivered everything; only for writeLoop

	inspect func(p *piece) *fault.Injection // the fault of the frame, or nil; it may replace it
	finish  func()                          // passes on the end of the stream
}

// readLoop is started and waited for by link.carry. It ends when the connection it
// reads is at its end, closed by the peer or by link.cut.
func (f *flow) readLoop() {
	defer close(f.queue)
	for {
		p, err := f.from.next()
		if len(p.bytes) > 0 {
			var injection *fault.Injection
			if p.head {
				injection = f.inspect(&p)
			}
			f.send(parcel{piece: p, injection: injection})
		}
		if err != nil {
			f.send(parcel{end: true})
			return
		}
	}
}

// send queues p. It waits while the queue is full.
func (f *flow) send(p parcel) {
	p.due = time.Now().Add(f.link.proxy.halfTrip())
	select {
	case f.queue <- p:
	case <-f.ctx.Done():
		p.injection.Cancel()
	}
}

// writeLoop is started and waited for by link.carry. It ends after readLoop.
func (f *flow) writeLoop() {
	for p := range f.queue {
		if f.ctx.Err() == nil && f.deliver(p) != nil {
			f.quit()
		}
		p.injection.Cancel() // unless it has landed
	}
}

// deliver passes p on when its time has come, and does to it what its injection says. An
// error means that nothing more can be delivered.
func (f *flow) deliver(p parcel) error {
	if err := f.link.proxy.transport.sleepUntil(f.ctx, p.due); err != nil {
		return err
	}
	switch {
	case p.injection != nil:
		return f.applyFault(p)
	case !p.end:
		return f.write(p.bytes)
	}
	if err := f.gate.Pass(f.ctx); err != nil {
		return err
	}
	f.finish()
	return nil
}

// applyFault is deliver for a parcel with an injection.
func (f *flow) applyFault(p parcel) error {
	bytes := p.bytes
	switch p.injection.Action() {
	case fault.CutBefore, fault.DropReply:
		f.link.cut()
		p.injection.Commit()
		return net.ErrClosed
	case fault.DropEvent:
		p.injection.Commit()
		return nil
	case fault.HalfAnswer:
		half := lengthSize + len(p.body())/2
		if err := f.write(bytes[:half]); err != nil {
			return err
		}
		bytes = bytes[half:]
	case fault.OtherSession:
		if err := f.write(withOtherSession(p)); err != nil {
			return err
		}
		bytes = nil
	case fault.Refuse:
		return f.refuse(p)
	}
	p.injection.Commit()
	if err := p.injection.Wait(f.ctx, p.due); err != nil {
		return err
	}
	return f.write(bytes)
}

// packet is how many bytes a limited bandwidth delivers at a time.
const packet = 1460

// write writes bytes, once the direction isn't blackholed and as fast as the bandwidth allows.
func (f *flow) write(bytes []byte) error {
	if err := f.gate.Pass(f.ctx); err != nil {
		return err
	}
	for len(bytes) > 0 {
		next := bytes
		if rate := f.link.proxy.bandwidth.Load(); rate > 0 {
			next = bytes[:min(packet, len(bytes))]
			if now := time.Now(); f.idle.Before(now) {
				f.idle = now
			}
			f.idle = f.idle.Add(time.Duration(len(next)) * time.Second / time.Duration(rate))
			if err := f.link.proxy.transport.sleepUntil(f.ctx, f.idle); err != nil {
				return err
			}
		}
		if _, err := f.to.Write(next); err != nil {
			return err
		}
		bytes = bytes[len(next):]
	}
	return nil
}

// refusedRequest returns the frame that the server gets in place of a request which is to
// be refused: a read that needs no permission. Its reply has the server's zxid and comes
// behind the replies to the requests before.
func refusedRequest(xid int32) []byte {
	body := append(proto.AppendString(nil, "/"), 0) // no watch
	return proto.RequestFrame(xid, proto.OpExists, body)
}

// refuse delivers the refusal in place of the reply to a refusedRequest.
func (f *flow) refuse(p parcel) error {
	code := p.injection.Code()
	d := proto.NewDecoder(p.body())
	head := d.ReplyHead()
	reply := proto.NewEncoder()
	reply.ReplyHead(head.Xid, code.Zxid(head.Zxid), proto.Code(code))
	p.injection.Commit()
	if err := f.write(reply.Frame()); err != nil || !code.Closes() {
		return err
	}
	f.link.cut()
	return net.ErrClosed
}
