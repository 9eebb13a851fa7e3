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
	wire    *wire.Wire
	request wire.Request
}

// Withdraw is part of watchreg.Removal.
func (r *removal) Withdraw() bool { return r.wire.TakeBack(&r.request) }

// removeWatches sends a removal, or returns nil.
func (s *Session) removeWatches(path string) watchreg.Removal {
	r := &removal{wire: s.wire, request: removeRequest(path)}
	r.request.Limit, r.request.Class = s.cfg.MaxReply, wire.Last
	r.request.OnEnd = func() {
		answer, _ := r.request.Answer() // whatever the outcome, the registry forgets the watch
		s.watches.Removed(path, r, answer.Code != proto.CodeUnimplemented)
	}
	if !s.wire.Send(&r.request) {
		return nil
	}
	return r
}
