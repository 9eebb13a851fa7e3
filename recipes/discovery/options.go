package discovery

import (
	"errors"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/locktel"
)

// An Option configures a [Registry]. Of package recipes, a Registry takes WithACL and WithName. New reports all
// faulty options at once.
type Option interface{ args.DiscoveryOption }

type option func(*config)

func (f option) ForDiscovery(cfg args.Config) { f(cfg.(*config)) }

type config struct {
	args.Options
	class      string
	disabled   bool
	unreadable func(path string, err error) // nil to log
}

// WithClass sets the Java class of payloads, which is written as "@class" into payloads that are JSON
// objects and have no such member. Curator's default reader fails for an object without it, unless the
// reader's payload type is a Map. With this option, payloads that are neither objects nor null can't
// be registered.
func WithClass(java string) Option {
	return option(func(cfg *config) {
		if java == "" {
			cfg.Fault("class: must not be empty")
		}
		cfg.class = java
	})
}

// WithDisabledField writes the field "enabled", which says whether an instance is disabled. Curator's
// default writer leaves the field out, and readers take an instance without it for an enabled one.
func WithDisabledField() Option { return option(func(cfg *config) { cfg.disabled = true }) }

// WithUnreadable calls fn for znodes that are no instances, or that the client can't read: each is left out
// of the lists. fn is called once for each state of a znode, by the call that reads it, and must not block. err has
// nothing of the znode's data. By default, the client's logger gets a warning.
func WithUnreadable(fn func(path string, err error)) Option {
	return option(func(cfg *config) {
		if fn == nil {
			cfg.Fault("unreadable: the function must not be nil")
		}
		cfg.unreadable = fn
	})
}

// newConfig returns the configuration, or all that is wrong with the options.
func newConfig(opts []Option) (config, error) {
	var cfg config
	return cfg, errors.Join(args.Configure(&cfg, opts, Option.ForDiscovery)...)
}

// reporter returns what reports a znode that is no instance, to the user's function or in the log.
func (cfg *config) reporter(c *framework.Client) func(path string, err error) {
	log := c.Logger().Named("discovery")
	return func(path string, err error) {
		if cfg.unreadable == nil {
			log.Warn("a znode is no instance: it is left out",
				zap.String(locktel.AttrPath, c.AbsolutePath(path)), zap.Error(err))
			return
		}
		usercall.Guard(log, "WithUnreadable", func() { cfg.unreadable(path, err) })
	}
}
