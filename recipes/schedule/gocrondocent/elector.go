package gocrondocent

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
)

// ErrNotLeader is returned by IsLeader if another host leads, or none.
var ErrNotLeader = errors.New("this host does not lead")

// An Elector is a [gocron.Elector] on package leader: one host runs all jobs. Its methods may be called concurrently.
type Elector struct {
	election *leader.Election
	term     atomic.Pointer[lease.Lease] // nil while another host leads
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector returns the Elector of the election at path, and sends nothing yet: call Run.
func NewElector(c *framework.Client, path string, opts ...leader.Option) (*Elector, error) {
	election, err := leader.New(c, path, opts...)
	if err != nil {
		return nil, fmt.Errorf("gocrondocent: new elector: %w", err)
	}
	return &Elector{election: election}, nil
}

// IsLeader returns nil while this host leads, and else [ErrNotLeader]. It sends nothing. gocron asks at the start of
// each job only. If the term is lost while a job works, the job works on.
func (e *Elector) IsLeader(context.Context) error {
	if term := e.term.Load(); term == nil || term.Err() != nil {
		return ErrNotLeader
	}
	return nil
}

// Run starts the scheduler and is a candidate, until ctx ends. Then it shuts the scheduler down, which waits for its
// running jobs (gocron.WithStopTimeout, 10 seconds by default), and resigns only after that: no host begins a job that
// still works here, unless it outlasts that time. The error is that of [leader.Election.Run] and of the scheduler's
// shutdown.
func (e *Elector) Run(ctx context.Context, s gocron.Scheduler) error {
	var down error
	s.Start()
	shut := false
	err := e.election.Run(ctx, func(term context.Context, l *lease.Lease) error {
		e.term.Store(l)
		defer e.term.Store(nil)
		<-term.Done()
		if ctx.Err() != nil {
			shut, down = true, s.Shutdown()
		}
		return nil
	})
	if !shut {
		down = s.Shutdown()
	}
	return errors.Join(err, down)
}
