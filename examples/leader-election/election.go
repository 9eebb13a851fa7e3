package main

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// An election lets one of several candidates lead at a time.
type election struct{ mutex *lock.Mutex }

// newElection returns a candidate's view of the election at path. queued hears when the
// candidate stands in the line of succession, and how many are before it.
func newElection(c *framework.Client, path, name string, queued func(ahead int)) (*election, error) {
	mutex, err := lock.NewMutex(c, path, lock.WithData([]byte(name)), lock.WithQueuePosition(queued))
	if err != nil {
		return nil, err
	}
	return &election{mutex}, nil
}

// campaign calls lead when the candidate is elected, and again each time it is
// elected anew after it was deposed: its session ended, or an operator deleted its
// znode. lead's context ends then, and lead has to stop. campaign returns when lead does in
// office, which resigns, or when ctx ends.
func (e *election) campaign(ctx context.Context, lead func(ctx context.Context, term int64) error) error {
	for {
		err := e.term(ctx, lead)
		if !errors.Is(err, lock.ErrLost) && !framework.Retryable(err) {
			return err
		}
	}
}

func (e *election) term(ctx context.Context, lead func(ctx context.Context, term int64) error) (err error) {
	lease, err := e.mutex.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Release(ctx)) }() // ErrLost where it was lost
	office, cancel := lease.Context(ctx)
	defer cancel()
	term := lease.Fence()
	return lead(office, term)
}

// leader returns who leads as the ensemble sees it, "" for nobody.
func (e *election) leader(ctx context.Context) (string, error) {
	all, err := e.mutex.Participants(ctx)
	if err != nil || len(all) == 0 {
		return "", err
	}
	return string(all[0].Data), nil // the holder comes first
}
