package chaos_test

import (
	"context"
	"time"

	"github.com/docent-go/docent/testing/internal/history"
	"github.com/docent-go/docent/testing/zktest"
)

// How long harm is done.
const (
	moment  = 200 * time.Millisecond
	while   = 2 * time.Second
	long    = 5 * time.Second
	lasting = (syncLimit + 2) * tick // longer than servers wait for one another
)

// serverFaults are done one at a time. A majority of the servers always runs, and mostly reaches
// each other. The first fault is done first.
func (r *run) serverFaults() []fault {
	stop := func(s *zktest.Server) error {
		ctx, cancel := context.WithTimeout(context.Background(), mendLimit)
		defer cancel()
		return s.Stop(ctx)
	}
	faults := append([]fault{{deposedName, r.depose}}, r.networkFaults()...)
	return append(faults,
		r.harm("server killed (kill -9), leader", true, (*zktest.Server).Kill, moment, while),
		r.harm("server killed (kill -9), follower", false, (*zktest.Server).Kill, moment, while),
		r.harm("server restarted", false, stop, 0, moment),
		r.harm("server frozen (SIGSTOP), leader", true, (*zktest.Server).Freeze, moment, long),
		r.harm("server frozen (SIGSTOP), follower", false, (*zktest.Server).Freeze, moment, long),
	)
}

// harm does something to the leader or to a follower, and heals it a while later.
func (r *run) harm(name string, leader bool, do func(s *zktest.Server) error, least, most time.Duration) fault {
	return fault{name, func(ctx context.Context, d dice) done {
		server := r.member(ctx, leader, d)
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
		r.mend()
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
	if !await(ctx, mendLimit, func() bool {
		var err error
		followers, err = r.ensemble.Followers(ctx)
		return err == nil && len(followers) > 0
	}) {
		return nil
	}
	return followers[d.IntN(len(followers))]
}
