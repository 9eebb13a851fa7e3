package session

import (
	"encoding/binary"

	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/internal/proto"
)

// removeRequest removes all watches of a path. Other types than any would halve a recursive watch up to ZooKeeper 3.8
// (ZOOKEEPER-4471).
func removeRequest(path string) wire.Request {
	const typeAny = 3
	return wire.Request{Opcode: proto.OpRemoveWatches, Body: binary.BigEndian.AppendUint32(proto.AppendString(nil, path), typeAny)}
}

// A removal is a request under way that removes the one-shot watches of a path. No goroutine waits for its reply.
type removal struct {
	session *Session
	path    string
	request wire.Request
}

// Withdraw is part of watchreg.Removal.
func (r *removal) Withdraw() bool { return r.session.wire.TakeBack(&r.request) }

// Ended is called when the request was sent and has ended.
func (r *removal) Ended() {
	answer, _ := r.request.Answer() // whatever the outcome, the registry forgets the watch
	r.session.watches.Removed(r.path, r, answer.Code != proto.CodeUnimplemented)
}

// removeWatches sends a removal, or returns nil.
func (s *Session) removeWatches(path string) watchreg.Removal {
	r := &removal{session: s, path: path, request: removeRequest(path)}
	r.request.Limit, r.request.Class, r.request.Owner = s.cfg.MaxReply, wire.Last, r
	if !s.wire.Send(&r.request) {
		return nil
	}
	return r
}
