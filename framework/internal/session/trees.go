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
		s.watches.FireAt(job.Path, watchreg.Unseen)
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
