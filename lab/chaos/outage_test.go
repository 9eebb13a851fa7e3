package chaos_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/testing/zktest"
)

// outageName begins the names of the outages.
const outageName = "outage longer than a session, "

// outageFaults have all clients without any server for longer than the longest session lasts. Servers
// that are killed or frozen give each session its full time again; those that are cut off from their
// clients let them expire.
func (r *run) outageFaults() []fault {
	faults := []fault{
		r.outage("all servers killed", (*zktest.Server).Kill),
		r.outage("all servers frozen", (*zktest.Server).Freeze),
	}
	if r.namespaces {
		faults = append(faults, r.outage("all clients cut off", r.ensemble.CutClients))
	}
	return faults
}

func (r *run) outage(name string, do func(s *zktest.Server) error) fault {
	return fault{outageName + name, func(ctx context.Context, d dice) done {
		f := done{whom: "all servers", from: history.Monotonic()}
		var all sync.WaitGroup
		for _, s := range r.ensemble.Servers {
			all.Go(func() { r.fail(do(s)) })
		}
		all.Wait()
		met := r.meetsOutage(ctx, longestSession+d.between(moment, while), f.from)
		f.to = history.Monotonic()
		r.repair()
		if !met {
			return done{}
		}
		return f
	}}
}

// meetsOutage waits, and reports whether no server served for so long and a worker has lost a lease since
// a moment. The loss alone would not do: other faults take leases, too.
func (r *run) meetsOutage(ctx context.Context, length time.Duration, since int64) bool {
	c, err := framework.NewClient(r.ensemble.Addr())
	if err != nil {
		r.fail(err)
		return false
	}
	waiting, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	err = c.AwaitConnected(waiting)
	r.fail(c.Close())
	return errors.Is(err, context.DeadlineExceeded) &&
		slices.ContainsFunc(r.slots, func(s *slot) bool { return r.board.lostSince(s.current().name, since) })
}
