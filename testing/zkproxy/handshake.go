package zkproxy

import (
	"encoding/binary"
	"io"
	"slices"
	"time"

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
	l.proxy.log.add(frame)
	strike := l.proxy.rules.Match(frame)
	if strike == nil {
		return p, true
	}
	if strike.Action().OnReply() {
		l.answer = strike
		return p, true
	}
	return p, l.sufferHandshake(strike, arrived)
}

// sufferHandshake does to a handshake that arrived at the given time what strike says.
// It reports whether the server is to have it.
func (l *link) sufferHandshake(strike *fault.Injection, arrived time.Time) bool {
	defer strike.Cancel() // unless it has landed
	switch strike.Action() {
	case fault.CutBefore:
		l.cut()
		strike.Commit()
		return false
	case fault.Garbage:
		l.answerGarbage(strike, arrived)
		return false
	}
	strike.Commit()
	return strike.Wait(l.ctx, arrived) == nil
}

// answerGarbage answers the handshake, and returns when the client has had enough.
func (l *link) answerGarbage(strike *fault.Injection, arrived time.Time) {
	if l.proxy.transport.sleepUntil(l.ctx, arrived.Add(2*l.proxy.halfTrip())) != nil {
		return
	}
	if l.proxy.toServer.pass(l.ctx) != nil || l.proxy.toClient.pass(l.ctx) != nil {
		return
	}
	if _, err := io.WriteString(l.client, garbage); err != nil {
		return
	}
	strike.Commit()
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
	bytes := slices.Clone(p.bytes)
	if len(p.body()) < sessionOffset+8 {
		return bytes
	}
	id := bytes[lengthSize+sessionOffset:]
	binary.BigEndian.PutUint64(id, binary.BigEndian.Uint64(id)+1)
	return bytes
}
