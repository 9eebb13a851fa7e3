package framework

import (
	"encoding/binary"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/proto"
)

// Arguments of addWatch and removeWatches.
const (
	modeRecursive = 1
	typeAny       = 3 // others would halve a recursive watch up to ZooKeeper 3.8 (ZOOKEEPER-4471)
)

// treePause is the pause after a server refused a recursive watch for now.
const treePause = time.Second

// tendTrees sets and removes recursive watches at the server until they match the client's
// TreeWatches. It does so in the background, while there is a connection that serves.
func (s *session) tendTrees() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.linked || s.sent.tree {
		return
	}
	job, ok := s.core.trees.next(s)
	if !ok {
		return
	}
	s.sent.tree = s.core.spawn(func() { // ends with the reply or the connection, or after a pause
		again := s.tendTree(job)
		s.mu.Lock()
		s.sent.tree = false
		s.mu.Unlock()
		if again {
			s.wake()
		}
	})
}

// tendTree does one job, and reports whether to look for more. It returns false if the connection
// broke, because the next connection wakes the loop.
func (s *session) tendTree(job treeJob) (again bool) {
	opcode, argument := proto.OpAddWatch, uint32(modeRecursive)
	if !job.set {
		opcode, argument = proto.OpRemoveWatches, typeAny
	}
	body := binary.BigEndian.AppendUint32(proto.AppendString(nil, job.path), argument)
	_, err := s.ask(s.ctx, opcode, body)
	if err != nil || !job.set { // no watch of the path's reads is left
		s.watches.FireAt(job.path, watchreg.Reconnected)
	}
	switch {
	case err == nil || !job.set && !Retryable(err): // there may be none to remove
		s.core.trees.done(job)
		return true
	case errors.Is(err, ErrUnsupported):
		s.core.trees.refuse(job.path, err)
		return true
	}
	s.core.log.Debug("cannot set a recursive watch", zap.String(zktel.AttrErrorType, ErrorType(err)), zap.Error(err))
	timer := time.NewTimer(treePause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}
