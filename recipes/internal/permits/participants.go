package permits

import (
	"cmp"
	"context"
	"errors"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/internal/contender"
	"github.com/docent-go/docent/recipes/lease"
)

// Participants returns the znodes of the permits, then those of the queue, each in order. The first
// of the queue may have znodes of both kinds. Its permits' znodes are the last, and are not
// holders while there are more znodes than permits.
func (p *Pool) Participants(ctx context.Context) ([]lease.Participant, error) {
	number, watch, err := p.Permits.watch(ctx, p.Client, p.ACL)
	if err != nil {
		return nil, err
	}
	closeWatch(watch)
	found, err := p.permits(ctx, number)
	if err != nil {
		return nil, err
	}
	queued, err := contender.Participants(ctx, p.turns())
	for i := range queued {
		queued[i].Holder = false
	}
	return append(found, queued...), err
}

func (p *Pool) permits(ctx context.Context, number int) ([]lease.Participant, error) {
	nodes, err := p.leases().List(ctx)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(nodes))
	for i, node := range nodes {
		paths[i] = zkpath.Join(LeasesDir(p.Path), node.Name)
	}
	reads, errs := p.Client.GetEach(ctx, paths...)
	var found []lease.Participant
	var created []int64
	for i, read := range reads {
		switch {
		case errors.Is(errs[i], framework.ErrNoNode):
			continue
		case errs[i] != nil && !args.Unreadable(errs[i]):
			return nil, errs[i]
		}
		found = append(found, contender.OfRead(paths[i], nodes[i], read, errs[i]))
		created = append(created, cmp.Or(read.Stat.Czxid, -1-int64(i))) // of an unread one it is like no other's
	}
	for i := range found { // the znodes of one attempt have one czxid
		waits := len(found) > number && created[i] == created[len(created)-1]
		found[i].Holder = !waits
	}
	return found, nil
}
