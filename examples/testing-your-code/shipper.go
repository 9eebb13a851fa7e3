package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

// A shipper ships the parcels from 1 to the last, one after the other. Any number of
// processes run one; only the one that has the lock is at work.
type shipper struct {
	client *framework.Client
	mutex  *lock.Mutex
	ledger string // the znode with the number of the next parcel
	last   int
	ship   func(ctx context.Context, parcel int) error
}

func newShipper(c *framework.Client, path string, last int, ship func(context.Context, int) error) (*shipper, error) {
	mutex, err := lock.NewMutex(c, path+"/lock")
	if err != nil {
		return nil, err
	}
	return &shipper{client: c, mutex: mutex, ledger: path + "/next", last: last, ship: ship}, nil
}

// run returns when all parcels are shipped, or ctx ends. If the lock is lost in the middle, or no
// server can be reached for a while, it queues for the lock again. Another shipper may have
// continued by then.
func (s *shipper) run(ctx context.Context) error {
	for {
		err := lock.Do(ctx, s.mutex, s.shipRest)
		if !errors.Is(err, lock.ErrLost) && !framework.Retryable(err) {
			return err
		}
	}
}

// shipRest is called with the lock held; its ctx ends when the lock is lost. It relies on the lock
// to exclude other shippers while it ships, but not for the ledger. It writes the ledger only if
// that is unchanged since it was read. So a process that was stopped for a while, and lost the
// lock meanwhile, does no harm there.
func (s *shipper) shipRest(ctx context.Context, _ *lock.Lease) error {
	for {
		next, version, err := s.next(ctx)
		if err != nil || next > s.last {
			return err
		}
		if err := s.ship(ctx, next); err != nil {
			return err
		}
		if _, err := s.client.Set(ctx, s.ledger, []byte(strconv.Itoa(next+1)), version); err != nil {
			return err
		}
	}
}

// next returns the number of the next parcel and the version of the ledger.
func (s *shipper) next(ctx context.Context) (parcel int, version int32, err error) {
	_, err = s.client.Create(ctx, s.ledger, []byte("1"), framework.WithParents())
	if err != nil && !errors.Is(err, framework.ErrNodeExists) {
		return 0, 0, err
	}
	data, st, err := s.client.Get(ctx, s.ledger)
	if err != nil {
		return 0, 0, err
	}
	parcel, err = strconv.Atoi(string(data))
	return parcel, st.Version, err
}
