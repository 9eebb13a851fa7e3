package partition

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/locktel"
)

// again is the least time from a call of serve to the next one for the key.
const again = time.Second

// A run is a call of Run.
type run struct {
	*Partition
	serve  func(ctx context.Context, key string, l *lease.Lease) error
	ctx    context.Context // ends with the run
	stop   context.CancelCauseFunc
	served map[string]context.CancelCauseFunc // ends the service of each key of this member
	keys   sync.WaitGroup                     // the goroutines of keys

	mu       sync.Mutex // guards following
	fault    error      // of serve
	panicked string     // what serve panicked with, and where
}

// keep serves the key whenever this process has its lease, until ctx ends. It returns an error if the
// run has to end.
func (r *run) keep(ctx context.Context, key string) error {
	contest := r.contest(key)
	warn := func(message string, err error) { r.warn(message, contest.Path, err) }
	failed, err := contest.Repeat(ctx, again, warn, func(ctx context.Context, l *lease.Lease) error {
		return r.serve(ctx, key, l)
	})
	switch {
	case failed != nil:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.fault = errors.Join(r.fault, failed)
		return failed
	case ctx.Err() != nil:
		return nil
	}
	return err
}

func (r *run) warn(message, path string, err error) {
	r.client.Logger().Named("partition").Warn(message,
		zap.String(locktel.AttrPath, r.client.AbsolutePath(path)), zap.Error(err))
}
