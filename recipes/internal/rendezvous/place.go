package rendezvous

import (
	"context"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/internal/former"
)

// A Place is the grant of a member: its znode. The client's next Enter waits until that is gone.
type Place struct{ contender.Grant }

// Release deletes the znode.
func (p *Place) Release(ctx context.Context) error {
	return p.Released(p.Client.Delete(ctx, p.Path, p.deletion()...))
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
