package schedule

import (
	"time"

	"github.com/docent-go/docent/recipes/internal/args"
)

// Bounds of the number of runs that are kept. A run takes up to 400 bytes.
const (
	defaultHistory = 20
	mostHistory    = 500
)

// An Option configures a [Schedule]. Of package recipes, a Schedule takes WithACL, WithLossPolicy and
// WithName. New reports all faulty options at once.
type Option interface{ args.ScheduleOption }

type option func(*config)

func (f option) ForSchedule(cfg args.Config) { f(cfg.(*config)) }

type config struct {
	args.Options
	wait    time.Duration // 0 for no bound but ctx
	history int
	rerun   bool
}

// WithRerun has a slot run again whose run was lost in the middle, because its host died, lost its session
// or was shut down. Calls then wait while another host runs the slot, to replace it. Each call runs the
// slot once at the most. It is for work that may be repeated. All hosts should agree.
func WithRerun() Option { return option(func(cfg *config) { cfg.rerun = true }) }

// WithWait bounds how long Run waits until it knows what became of the slot, or may begin: for the end of
// an outage, of another slot's run, and with [WithRerun] of the slot's own run elsewhere. d must be positive.
// It does not bound the function. By default Run waits as long as its context lasts.
func WithWait(d time.Duration) Option {
	return option(func(cfg *config) {
		if d <= 0 {
			cfg.Fault("wait %v: must be positive", d)
		}
		cfg.wait = d
	})
}

// WithHistory sets how many runs are kept, from 1 to 500. The default is 20. Fewer are kept if that many
// don't fit into one request of the client ([framework.WithMaxPacket]). Each host must be able to read what the
// others write.
func WithHistory(runs int) Option {
	return option(func(cfg *config) {
		if runs < 1 || runs > mostHistory {
			cfg.Fault("history %d: must be from 1 to %d", runs, mostHistory)
		}
		cfg.history = runs
	})
}
