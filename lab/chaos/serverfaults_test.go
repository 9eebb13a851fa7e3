package chaos_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/lab/history"
	"github.com/docent-go/docent/testing/zktest"
)

// How long harm is done.
const (
	moment  = 200 * time.Millisecond
	while   = 2 * time.Second
	long    = 5 * time.Second
	lasting = (syncLimit + 2) * tick // longer than servers wait for one another
)

// serverFaults are done one at a time. But for outages, a majority of the servers always runs, and
// mostly reaches each other. The first two faults are done first.
func (r *run) serverFaults() []fault {
	stop := func(s *zktest.Server) error {
		ctx, cancel := context.WithTimeout(context.Background(), repairLimit)
		defer cancel()
		return s.Stop(ctx)
	}
	faults := slices.Concat([]fault{{deposedName, r.depose}}, r.outageFaults(), r.networkFaults(), r.observerFaults())
	return append(faults,
		r.harm("server killed (kill -9), leader", true, (*zktest.Server).Kill, moment, while),
		r.harm("server killed (kill -9), follower", false, (*zktest.Server).Kill, moment, while),
		r.harm("server restarted", false, stop, 0, moment),
		r.harm("server frozen (SIGSTOP), leader", true, (*zktest.Server).Freeze, moment, long),
		r.harm("server frozen (SIGSTOP), follower", false, (*zktest.Server).Freeze, moment, long),
	)
}

// observerFaults are done to the observer, and to it and its master at once: the member that tells the
// observer what was decided, and tells the leader which of the observer's sessions are alive.
func (r *run) observerFaults() []fault {
	return []fault{
		r.toObserver("observer killed (kill -9)", (*zktest.Server).Kill),
		r.toObserver("observer frozen (SIGSTOP)", (*zktest.Server).Freeze),
		r.toObserver("observer cut off from the others", r.ensemble.Isolate),
		r.withMaster("observer and its master killed at once", (*zktest.Server).Kill),
		r.withMaster("observer and its master frozen at once", (*zktest.Server).Freeze),
	}
}

func (r *run) toObserver(name string, do func(s *zktest.Server) error) fault {
	return r.harmTo(name, func(context.Context, dice) *zktest.Server { return r.ensemble.Servers[votes] }, do, moment, lasting)
}

// withMaster does something to the observer and to its master.
func (r *run) withMaster(name string, do func(s *zktest.Server) error) fault {
	_, observers := r.members()
	both := func(master *zktest.Server) error { return errors.Join(do(master), do(observers[0])) }
	return r.harmTo(name, r.master, both, moment, lasting)
}

// master returns the member that the observer learns from.
func (r *run) master(ctx context.Context, _ dice) (master *zktest.Server) {
	voters, _ := r.members()
	await(ctx, repairLimit, func() bool {
		i := slices.IndexFunc(voters, func(s *zktest.Server) bool { return hasObserver(ctx, s) })
		if i >= 0 {
			master = voters[i]
		}
		return master != nil
	})
	return master
}

// hasObserver reports whether the server keeps the observer up to date.
func hasObserver(ctx context.Context, s *zktest.Server) bool {
	answer, err := s.FourLetter(ctx, "mntr")
	return err == nil && strings.Contains(answer, "zk_synced_observers\t1")
}

// harm does something to the leader or to a follower, and heals it a while later.
func (r *run) harm(name string, leader bool, do func(s *zktest.Server) error, least, most time.Duration) fault {
	return r.harmTo(name, func(ctx context.Context, d dice) *zktest.Server { return r.member(ctx, leader, d) }, do, least, most)
}

func (r *run) harmTo(
	name string, choose func(context.Context, dice) *zktest.Server, do func(s *zktest.Server) error, least, most time.Duration,
) fault {
	return fault{name, func(ctx context.Context, d dice) done {
		server := choose(ctx, d)
		if server == nil {
			return done{} // the run is over
		}
		f := done{whom: server.Addr(), from: history.Monotonic()}
		r.fail(do(server))
		if d.IntN(2) == 0 { // half of the faults are short
			most = min(most, long)
		}
		pause(ctx, d.between(least, most))
		f.to = history.Monotonic()
		r.repair()
		return f
	}}
}

// member returns the leader or one of the followers.
func (r *run) member(ctx context.Context, leader bool, d dice) *zktest.Server {
	if leader {
		s, err := r.ensemble.Leader(ctx)
		if err != nil {
			return nil
		}
		return s
	}
	var followers []*zktest.Server
	if !await(ctx, repairLimit, func() bool {
		var err error
		followers, err = r.ensemble.Followers(ctx)
		return err == nil && len(followers) > 0
	}) {
		return nil
	}
	return followers[d.IntN(len(followers))]
}
