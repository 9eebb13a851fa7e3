package execute

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/semaphore"
)

// A shown lock can list its contenders.
type shown interface {
	Participants(ctx context.Context) ([]lease.Participant, error)
}

// locker returns the lock of the job, and its first member for messages. revoked is called when
// another client asks for the lock.
func (j *job) locker(c *framework.Client, revoked func()) (lock.Locker, shown, error) {
	members := make([]lock.Locker, 0, len(j.paths))
	var faults []error
	for _, path := range j.paths {
		member, err := j.member(c, path, revoked)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		members = append(members, member)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, nil, err
	}
	first, _ := members[0].(shown)
	if len(members) == 1 {
		return members[0], first, nil
	}
	multi, err := lock.NewMulti(members...)
	return multi, first, err
}

func (j *job) member(c *framework.Client, path string, revoked func()) (lock.Locker, error) {
	policy := lease.AtDeadline
	if j.onSuspend == suspendStops {
		policy = lease.OnSuspend
	}
	switch j.kind {
	case "semaphore":
		s, err := semaphore.New(c, path, j.semaphore, recipes.WithLossPolicy(policy), recipes.WithData([]byte(j.data)))
		return permit{s}, err
	case "leader":
		return j.election(c, path, policy, revoked)
	}
	opts := []lock.Option{recipes.WithLossPolicy(policy)}
	if j.data != "" {
		opts = append(opts, recipes.WithData([]byte(j.data)))
	}
	if j.revocable {
		opts = append(opts, recipes.WithRevocation(func(*lock.Lease) { revoked() }))
	}
	switch j.kind {
	case "exclusive":
		return lock.NewUnfairMutex(c, path, opts...)
	case "read", "write":
		rw, err := lock.NewRWMutex(c, path, opts...)
		if err != nil {
			return nil, err
		}
		if j.kind == "read" {
			return rw.Read(), nil
		}
		return rw.Write(), nil
	}
	return lock.NewMutex(c, path, opts...)
}

func (j *job) election(c *framework.Client, path string, policy lease.LossPolicy, revoked func()) (lock.Locker, error) {
	opts := []leader.Option{recipes.WithLossPolicy(policy), leader.WithMetadata()}
	if j.data != "" {
		opts = append(opts, leader.WithID(j.data))
	}
	if j.revocable {
		opts = append(opts, recipes.WithRevocation(func(*lease.Lease) { revoked() }))
	}
	e, err := leader.New(c, path, opts...)
	return candidate{e}, err
}

// A permit is a semaphore as a lock: each lease is of one permit.
type permit struct{ *semaphore.Semaphore }

// Lock is part of [lock.Locker].
func (p permit) Lock(ctx context.Context) (*lock.Lease, error) { return p.Acquire(ctx, 1) }

// TryLock is part of [lock.Locker].
func (p permit) TryLock(ctx context.Context) (*lock.Lease, error) { return p.TryAcquire(ctx, 1) }

// A candidate is an election as a lock.
type candidate struct{ *leader.Election }

// Lock is part of [lock.Locker].
func (c candidate) Lock(ctx context.Context) (*lock.Lease, error) { return c.Campaign(ctx) }

// TryLock is part of [lock.Locker]. The options refuse it.
func (c candidate) TryLock(context.Context) (*lock.Lease, error) {
	return nil, errors.New("an election has no attempt without waiting")
}
