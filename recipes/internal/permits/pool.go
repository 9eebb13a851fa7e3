// Package permits is the protocol of Apache Curator's InterProcessSemaphoreV2: a queue in the
// directory locks, and one znode for each permit in the directory leases. Package semaphore and the
// SemaphoreMutex of package lock are made of it.
//
// The first contender of the queue creates its permits' znodes, and holds the permits when the
// directory has no more children than there are permits. It then leaves the queue. Children of any
// creator count, as for Curator. The first three of four properties keep "at most n", however many
// contenders have znodes in leases; the fourth is for progress:
//
//   - A listing grants only by the number that was valid when the listing was answered: a watch on the
//     number is valid then, because a server notifies of a change before it replies from a later state.
//   - A listing that grants was read by the session that created the znodes, so it is no older than
//     they are. Of two grants, the later listing shows the znodes of both.
//   - All znodes of an attempt are created by one transaction, so no listing shows a part of them.
//   - A contender that waits and is not the first of the queue has no znode in leases. So the contender
//     that waits for permits waits for holders only: two that waited there would wait for each other.
//
// A contender for a single permit first tries without a place in the queue, if the pool's previous
// contender did not have to wait: see takeAtOnce. Behind the create of its znode in leases it lists leases
// and the queue. It holds the permit if it sees no other permit and no contender in the queue. Otherwise
// it deletes the znode and queues. Why this is safe:
//
//   - Exclusion: it is granted by a listing of leases behind its own create, with room for one child. Of
//     two grants, the later listing shows both znodes, whether their owners have queued or not.
//   - Order: if a contender is in the queue when the znode is created and remains there, the listing of
//     the queue shows it. A contender that queues later has come later.
//   - Fences: an older znode in leases would have been listed, so who is granted later has a younger one.
//   - Progress: two that try at once both queue. A contender in the queue waits for such a znode as for a
//     holder's, until its deletion, or the end of its session if its process stops. Each pool tries again
//     only after a grant without a wait, so new contenders can't keep one in the queue waiting by this.
//
// Package inspect of the command and docs/recipes/semaphore.md describe the same order and znodes.
package permits

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/internal/waitqueue"
	"github.com/docent-go/docent/recipes/lease"
)

// The directories below the semaphore's path, and the kinds of the znodes in them.
const (
	turnsDir  = "locks"
	turnKind  = queuenode.MutexKind
	leasesDir = queuenode.LeasesDir
	leaseKind = queuenode.LeaseKind
)

// A Pool is the permits at a path. It is immutable, but for free.
type Pool struct {
	Client  *framework.Client
	Path    string // as its user gave it
	Permits Number
	ACL     []acl.Entry // of znodes and missing parents; nil for the client's

	LossPolicy lease.LossPolicy
	Revoked    func(*lease.Lease)                               // may be nil
	Position   func(ahead int)                                  // may be nil
	LongWait   func(waited time.Duration, by waitqueue.Blocker) // may be nil

	Telemetry telemetry.Lock
	Recipe    args.Recipe // begins the text of the errors of releases

	free atomic.Bool // the latest grant came without a wait, and no attempt by takeAtOnce since
}

// takesAtOnce reports whether an attempt at n permits begins without a place in the queue. Of several
// permits, another contender could take one meanwhile, and its fence would be higher than the next one's.
func (p *Pool) takesAtOnce(n int) bool {
	return n == 1 && p.Permits == Number{Fixed: 1} && p.free.CompareAndSwap(true, false)
}

// LeasesDir returns the directory of the permits' znodes. Its children count as permits.
func LeasesDir(path string) string { return zkpath.Join(path, leasesDir) }

// turns returns the queue. Its first contender acquires its permits next.
// The holders count as one that is ahead of it.
func (p *Pool) turns() *waitqueue.Queue {
	q := p.queue(turnsDir, turnKind)
	q.Beyond = 1
	return q
}

// leases returns the directory of the permits as a queue. It is in the order of the grants.
func (p *Pool) leases() *waitqueue.Queue { return p.queue(leasesDir, leaseKind) }

func (p *Pool) queue(dir, kind string) *waitqueue.Queue {
	return &waitqueue.Queue{
		Client: p.Client, Dir: zkpath.Join(p.Path, dir), Path: p.Path, Kinds: []string{kind}, ACL: p.ACL,
		Predecessor: queuenode.ExclusivePredecessor,
	}
}

// Acquire waits for n permits and returns one lease of them. data returns the data of the attempt's
// znodes. If ctx ends first, the error is a [*lease.WaitError]. With try, Acquire makes one attempt without a
// wait for another contender: it returns [lease.ErrHeld] if the permits are not free, or if another contender waits.
func (p *Pool) Acquire(
	ctx context.Context, n int, try bool, data func(*telemetry.Acquire) []byte,
) (*lease.Lease, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return contender.Acquire(ctx, p.Telemetry, p.Client, try, func(ctx context.Context, acq *telemetry.Acquire) (*lease.Lease, error) {
		a := p.newAttempt(n, data(acq), acq)
		return contender.RunAttempt(ctx, func() error {
			if try {
				return a.try(ctx)
			}
			return a.run(ctx)
		}, func() *lease.Lease {
			return a.lease(ctx)
		}, func(err error) error {
			defer a.withdraw()
			if try {
				return err
			}
			return a.waitError(ctx, err)
		})
	})
}
