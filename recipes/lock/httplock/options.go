package httplock

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/docent-go/docent/recipes/internal/args"
)

// defaultWait bounds the wait for the lock. It is less than the timeouts that clients and load
// balancers usually have, so they see the answer.
const defaultWait = 5 * time.Second

// An Option configures [New].
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(cfg *config) { f(cfg) }

type config struct {
	wait   time.Duration // 0 for none
	refuse func(w http.ResponseWriter, r *http.Request, err error)
	faults []error
}

// WithWait bounds a request's wait for the lock. d must be positive; the default is 5 s.
func WithWait(d time.Duration) Option {
	return optionFunc(func(cfg *config) {
		if d <= 0 {
			cfg.faults = append(cfg.faults, fmt.Errorf("wait %v: must be positive", d))
		}
		cfg.wait = d
	})
}

// WithoutWaiting refuses a request at once if another owner holds the lock. If no server answers, it
// refuses the request after the client's connect timeout: see framework.WithConnectTimeout.
func WithoutWaiting() Option { return optionFunc(func(cfg *config) { cfg.wait = 0 }) }

// WithRefusal sets the function that answers a request which failed: because it did not acquire the
// lock, lost it, or its function returned an error. Nothing of an answer was written before. The
// default answers with the text of [Status], and with Retry-After for 409 and 503. Neither shows
// err, whose text names hosts and paths.
func WithRefusal(refuse func(w http.ResponseWriter, r *http.Request, err error)) Option {
	return optionFunc(func(cfg *config) {
		if refuse == nil {
			cfg.faults = append(cfg.faults, errors.New("refusal: must not be nil"))
		}
		cfg.refuse = refuse
	})
}

// refuse is the default of WithRefusal.
func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	status := Status(err)
	if status == http.StatusConflict || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, http.StatusText(status), status)
}

func newConfig(opts []Option) (config, error) {
	cfg := config{wait: defaultWait, refuse: refuse}
	faults := args.Apply(&cfg, opts, Option.apply)
	return cfg, errors.Join(append(faults, cfg.faults...)...)
}
