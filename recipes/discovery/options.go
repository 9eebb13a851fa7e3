package discovery

import (
	"errors"

	"go.uber.org/zap"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/boundary"
	"github.com/docent-go/docent/recipes/locktel"
	"github.com/docent-go/docent/recipes/node"
)

// An Option configures a [Registry]. New reports all faulty options at once.
type Option interface{ apply(*config) }

type option func(*config)

func (f option) apply(cfg *config) { f(cfg) }

type config struct {
	class      string
	disabled   bool
	unreadable func(path string, err error) // nil to log
	name       string
	node       []node.Option // of instances that are registered
	faults     []error
}

// WithClass sets the Java class of payloads, which is written as "@class" into payloads that are JSON
// objects and have no such member. Curator's default reader fails for an object without it, unless the
// reader's payload type is a Map. With this option, payloads that are neither objects nor null can't
// be registered.
func WithClass(java string) Option {
	return option(func(cfg *config) {
		if java == "" {
			cfg.faults = append(cfg.faults, errors.New("class: must not be empty"))
		}
		cfg.class = java
	})
}

// WithDisabledField writes the field "enabled", which says whether an instance is disabled. Curator's
// default writer leaves the field out, and readers take an instance without it for an enabled one.
func WithDisabledField() Option { return option(func(cfg *config) { cfg.disabled = true }) }

// WithUnreadable calls fn for znodes that are no instances: each is left out of the lists. fn is called
// once for each state of a znode, by the call that reads it, and must not block. err has
// nothing of the znode's data. By default, the client's logger gets a warning.
func WithUnreadable(fn func(path string, err error)) Option {
	return option(func(cfg *config) {
		if fn == nil {
			cfg.faults = append(cfg.faults, errors.New("unreadable: the function must not be nil"))
		}
		cfg.unreadable = fn
	})
}

// WithACL sets the ACL of instances that are registered, as [node.WithACL] does. All processes that
// look for instances have to be allowed to read them.
func WithACL(list ...acl.Entry) Option {
	return option(func(cfg *config) {
		cfg.node = append(cfg.node, node.WithACL(boundary.ACL(list, &cfg.faults)...))
	})
}

// WithName sets a name for the registry in telemetry, where paths don't go.
func WithName(name string) Option {
	return option(func(cfg *config) {
		cfg.name = name
		cfg.node = append(cfg.node, node.WithName(name))
	})
}

// newConfig returns the configuration, or all that is wrong with the options.
func newConfig(opts []Option) (config, error) {
	var cfg config
	faults := boundary.Apply(opts, func(o Option) { o.apply(&cfg) })
	return cfg, errors.Join(append(faults, cfg.faults...)...)
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
