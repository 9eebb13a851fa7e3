package chaos_test

import (
	"context"
	"time"

	"github.com/docent-go/docent/testing/zktest"
)

// serverFaults are done one at a time, so that a majority always stands.
func (r *run) serverFaults() []fault {
	harm := func(name string, leader bool, do func(s *zktest.Server) error, least, most time.Duration) fault {
		return fault{name, func(ctx context.Context, d dice) bool {
			server := r.member(ctx, leader, d)
			if server == nil {
				return false // the run is over
			}
			r.fail(do(server))
			pause(ctx, d.between(least, most))
			r.mend()
			return true
		}}
	}
	stop := func(s *zktest.Server) error {
		ctx, cancel := context.WithTimeout(context.Background(), mendLimit)
		defer cancel()
		return s.Stop(ctx)
	}
	isolate := func(s *zktest.Server) error {
		r.ensemble.Isolate(s)
		return nil
	}
	const moment, while, long = 200 * time.Millisecond, 2 * time.Second, 5 * time.Second
	return []fault{
		harm("server killed (kill -9), leader", true, (*zktest.Server).Kill, moment, while),
		harm("server killed (kill -9), follower", false, (*zktest.Server).Kill, moment, while),
		harm("server restarted", false, stop, 0, moment),
		harm("server frozen (SIGSTOP), leader", true, (*zktest.Server).Freeze, moment, long),
		harm("server frozen (SIGSTOP), follower", false, (*zktest.Server).Freeze, moment, long),
		harm("server cut off from its peers, leader", true, isolate, moment, long),
		harm("server cut off from its peers, follower", false, isolate, moment, long),
	}
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
