package permits

import (
	"context"

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
	found, _, reads, err := contender.Read(ctx, p.leases())
	if err != nil {
		return nil, err
	}
	queued, _, _, err := contender.Read(ctx, p.turns())
	if err != nil {
		return nil, err
	}
	last := len(found) - 1
	for i := range found { // the znodes of one attempt have one czxid
		waits := i == last || reads[i].Stat.Czxid != 0 && reads[i].Stat.Czxid == reads[last].Stat.Czxid
		found[i].Holder = !waits || len(found) <= number
	}
	return append(found, queued...), nil
}
