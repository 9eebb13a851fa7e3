package session

import (
	"context"
	"time"

	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/internal/usercall"
)

// New begins to connect. ctx ends when the client is closed, and ends the session.
func New(ctx context.Context, cfg Config) (*Session, error) {
	s := &Session{
		cfg:      cfg,
		client:   ctx,
		poke:     make(chan struct{}, 1),
		first:    make(chan struct{}, 1),
		allLost:  make(chan struct{}),
		notified: make(chan struct{}),
		holds:    holdSet{members: make(map[*Hold]struct{})},
	}
	s.wire = wire.New(wire.Config{
		Timeout: cfg.Timeout, MarginFor: cfg.Margin, MaxReply: cfg.MaxReply, ReadOnly: cfg.ReadOnly,
		OnEvent: s.onEvent, OnHandshake: s.setTimer, OnUp: s.onUp, OnDown: s.onDown,
	})
	s.watches = watchreg.New(func(fn func()) { go usercall.Guard(cfg.Log, "Watch.AfterFire", fn) }, s.removeWatches)
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s, s.wire.Start(s.dial, cfg.Log)
}

// Run runs the session to its end and returns the cause of the end.
func (s *Session) Run() error {
	s.Wake() // to look for due work first
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	for {
		select {
		case <-s.poke:
		case <-timer.C:
		case <-s.ctx.Done():
			return s.finish(context.Cause(s.ctx))
		}
		if err := s.handleReports(); err != nil {
			return s.finish(err)
		}
		if wait := s.tend(time.Now()); wait > 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
	}
}

// onEvent runs on the goroutine that reads, in the connection's order.
func (s *Session) onEvent(kind int32, path string) {
	event := watchreg.Event(kind)
	s.watches.Fire(event, path)
	if s.cfg.Trees == nil {
		return
	}
	if parent := s.cfg.Trees.Fire(s, event, path); parent != "" { // see wire.Wire's trees
		s.watches.Fire(watchreg.ChildrenChanged, parent)
	}
}
