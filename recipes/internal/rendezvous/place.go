package rendezvous

import (
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/former"
)

// A Place is the grant of a member: its znode. The client's next Enter waits until that is gone.
type Place struct {
	contender.Grant
	Gate *Gate
}

// Release deletes the znode. If the session ends meanwhile, Release deletes the znode in the next
// session, because it would be counted in the next use of the barrier until the ensemble has ended
// the session.
func (p *Place) Release(ctx context.Context) error {
	err := p.Client.Delete(ctx, p.Path, p.deletion()...)
	released := p.Released(err)
	if released == nil && errors.Is(err, framework.ErrSessionEnded) {
		_, name := framework.SplitPath(p.Path)
		return p.OpError("release", p.Of, p.Gate.ensureGone(ctx, name))
	}
	return released
}

// Discard deletes the znode in the background.
func (p *Place) Discard() {
	p.Client.Discard(p.Path, p.deletion()...)
	p.Session.Release()
}

func (p *Place) deletion() []framework.DeleteOption {
	dir, name := framework.SplitPath(p.Path)
	names, done := former.NamesOf(p.Client, dir)
	defer done()
	return names.Delete(name, p.Session.Session())
}

// ensureGone returns when the znode of a member that has been released is gone.
func (g *Gate) ensureGone(ctx context.Context, name string) error {
	names, done := former.NamesOf(g.Client, g.Path)
	defer done()
	return names.AwaitGone(ctx, g.Client, name)
}
