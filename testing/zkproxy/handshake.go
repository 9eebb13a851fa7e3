package zkproxy

import (
	"bytes"
	"io"
	"time"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
)

// garbage is what an HTTP server says to a handshake. Its first four bytes, taken for
// the length of a frame, are 1.2 GB.
const garbage = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request"

// receiveHandshake returns the first piece that the client sends, when the rules let
// it go. It reports false if it isn't to be sent to the server.
func (l *link) receiveHandshake(from *source) (parcel, bool) {
	first, err := from.nextHandshake()
	if len(first.bytes) == 0 && err != nil {
		return parcel{}, false
	}
	arrived := time.Now()
	p := parcel{piece: first, due: arrived.Add(l.proxy.halfTrip())}
	if !first.head {
		return p, true
	}
	frame := decodeConnect(first.body())
	l.proxy.add(frame)
	injection := l.proxy.rules.Match(frame)
	if injection == nil {
		return p, true
	}
	if injection.Action().OnReply() {
		l.answer = injection
		return p, true
	}
	return p, l.applyToHandshake(injection, arrived)
}

// applyToHandshake does to a handshake that arrived at the given time what injection says.
// It reports whether the server is to have it.
func (l *link) applyToHandshake(injection *fault.Injection, arrived time.Time) bool {
	defer injection.Cancel() // unless it has landed
	switch injection.Action() {
	case fault.CutBefore:
		l.cut()
		injection.Commit()
		return false
	case fault.Garbage:
		l.answerGarbage(injection, arrived)
		return false
	}
	injection.Commit()
	return injection.Wait(l.ctx, arrived) == nil
}

// answerGarbage answers the handshake, and returns when the client has had enough.
func (l *link) answerGarbage(injection *fault.Injection, arrived time.Time) {
	if l.proxy.transport.sleepUntil(l.ctx, arrived.Add(2*l.proxy.halfTrip())) != nil {
		return
	}
	if l.proxy.toServer.Pass(l.ctx) != nil || l.proxy.toClient.Pass(l.ctx) != nil {
		return
	}
	if _, err := io.WriteString(l.client, garbage); err != nil {
		return
	}
	injection.Commit()
	_, _ = io.Copy(io.Discard, l.client) // the end that matters, not how it came
}

// inspectAnswer learns the session from the answer to the handshake.
func (l *link) inspectAnswer(body []byte) *fault.Injection {
	if s, ok := decodeAnswer(body); ok {
		l.session.Store(&s)
	}
	return l.answer
}

// withOtherSession returns the answer to a handshake with another session id in it.
func withOtherSession(p parcel) []byte {
	d := proto.NewDecoder(p.body())
	answer := d.ConnectReply()
	if d.End() != nil {
		return p.bytes // it is none
	}
	answer.Session = fault.OtherID(answer.Session)
	return answer.Frame()
}

// A Session is the server's answer to a client's handshake. With ID and Password any client can
// resume the session, and so take it over or close it. A test can thus end a session of a client
// that keeps its password to itself.
type Session struct {
	ID       int64
	Password []byte
	Timeout  time.Duration // as the server has granted it
}

// decodeConnect reads the session id that a handshake asks for.
func decodeConnect(body []byte) fault.Frame {
	d := proto.NewDecoder(body)
	return fault.Frame{Op: fault.Connect, Session: d.ConnectRequest().Session}
}

// decodeAnswer reads the session from the server's answer to the handshake. It
// reports false if there is none: the session has expired, or this is no answer.
func decodeAnswer(body []byte) (Session, bool) {
	d := proto.NewDecoder(body)
	reply := d.ConnectReply()
	s := Session{
		Timeout:  time.Duration(reply.Timeout) * time.Millisecond,
		ID:       reply.Session,
		Password: bytes.Clone(reply.Password),
	}
	return s, d.Err() == nil && s.ID != 0
}
