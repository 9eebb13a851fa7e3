// Package barrier keeps processes waiting for one another: Curator's DistributedBarrier and
// DistributedDoubleBarrier.
//
// Begin with [NewDouble], or with [New]. While a [Barrier] is set, every client waits for its removal. A [Double]
// lets a number of members begin together and end together. A member's place in a Double is a [lease.Lease], which
// is lost with the member's session, as package lease describes.
//
// Stability: stable.
//
// # Nodes
//
// A Barrier is the persistent znode at its path. A Double has an ephemeral znode /path/<id> for each
// member. The persistent znode /path/ready exists from the entry of the last member until all have
// left. Go, Java and kazoo processes can share both.
//
// # Errors
//
// [*lease.LostError]; a [*lease.WaitError], which wraps the context's error, if the context ended an
// Enter; and the client's errors, as package framework describes them. Everything may be called
// concurrently.
package barrier

import (
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/args"
)

// An Option configures a [Barrier] or a [Double]. It is one of package recipes: WithACL or WithName. The
// constructor reports all faulty options at once.
type Option interface{ args.BarrierOption }

// recipe begins the text of errors.
const recipe args.Recipe = "barrier"

// newConfig returns the configuration, or all faults of a constructor's arguments.
func newConfig(c *framework.Client, path string, opts []Option) (cfg args.Options, err error) {
	faults := append(args.Target(c, path), args.Configure(&cfg, opts, Option.ForBarrier)...)
	return cfg, errors.Join(faults...)
}
