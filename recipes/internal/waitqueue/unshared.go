//go:build docent_plain

package waitqueue

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/queuenode"
)

// newAttempt returns an Attempt without shortcuts: the protocol alone.
func newAttempt() *Attempt {
	a := new(Attempt)
	a.shortcuts = plain{a}
	return a
}

// plain lists after the creation of the node, and after each event.
type plain struct{ *Attempt }

func (p plain) list(ctx context.Context) (view, error) { return p.queue.list(ctx, p.znode.Client) }

func (plain) creating(opts []framework.CreateOption) []framework.CreateOption { return opts }
func (plain) answered()                                                       {}
func (plain) left(bool)                                                       {}
func (plain) listed() bool                                                    { return false }
func (plain) prepare(pos position, _ []queuenode.Node, _ int) position        { return pos }
func (plain) after(*waiter) (pos position, known bool)                        { return position{}, false }
