package session

import (
	"encoding/binary"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/proto"
)

const (
	modeRecursive = 1 // an argument of addWatch

	// treePause is the pause after a server refused a recursive watch for now.
	treePause = time.Second
)

// tendTrees sets and removes recursive watches at the server until they match the client's Trees. It
// does so in the background, while there is a connection that serves.
func (s *Session) tendTrees() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serving || s.sent.tree {
		return
	}
	job, ok := s.cfg.Trees.Next(s)
	if !ok {
		return
	}
	s.sent.tree = s.cfg.Client.Spawn(func() { // ends with the reply or the connection, or after a pause
		more := s.tendTree(job)
		s.mu.Lock()
		s.sent.tree = false
		s.mu.Unlock()
		if more {
			s.Wake()
		}
	})
}

// tendTree does one job, and reports whether to look for more. It returns false if the connection
// broke, because the next connection wakes the loop.
func (s *Session) tendTree(job watchreg.TreeJob) (more bool) {
	rq := removeRequest(job.Path)
	if job.Set {
		rq = wire.Request{Opcode: proto.OpAddWatch, Body: binary.BigEndian.AppendUint32(proto.AppendString(nil, job.Path), modeRecursive)}
	}
	opcode := rq.Opcode
	rq.Limit = s.cfg.MaxReply
	answer, err := s.wire.Ask(&rq)
	if err = s.fault(opcode, answer, err); err == nil {
		err = zkerr.OfCode(answer.Code)
	}
	if err != nil || !job.Set { // no watch of the path's reads is left
		s.watches.Fire(watchreg.Unseen, job.Path)
	}
	switch {
	case err == nil || !job.Set && !zkerr.Retryable(err): // there may be none to remove
		s.cfg.Trees.Done(job)
		return true
	case errors.Is(err, zkerr.ErrUnsupported):
		s.cfg.Trees.Refuse(job, err)
		return true
	}
	s.cfg.Trees.Delay(job, err)
	s.cfg.Log.Debug("cannot set a recursive watch", zap.String(zktel.AttrErrorType, errtype.Of(err)), zap.Error(err))
	timer := time.NewTimer(treePause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

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
