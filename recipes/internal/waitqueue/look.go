package waitqueue

import "context"

// look returns where the attempt's node is. A node that is not listed is gone: the listing is no
// older than the node, since it was read by the session that created it.
func (a *Attempt) look(ctx context.Context) (position, error) {
	nodes, err := a.list(ctx)
	if err != nil {
		return position{}, err
	}
	own := Index(nodes, a.self.Name)
	switch {
	case own < 0:
		return position{}, errGone
	case a.beside != nil:
		return position{place: own}, a.checkBeside(nodes)
	}
	return a.queue.position(nodes, own), nil
}

// list returns the queue, as listed along with the creation of the node, or by a listing that the
// attempt shares. The first one may have been on its way already if it contains the node; later
// ones are sent after whatever made the attempt look again.
func (a *Attempt) list(ctx context.Context) ([]Node, error) {
	fresh, names := a.fresh, a.listed
	a.fresh, a.listed = false, nil
	if names != nil {
		return a.queue.ordered(ctx, a.client, names)
	}
	ask := func(ctx context.Context) ([]Node, error) { return a.queue.list(ctx, a.client) }
	return listingsOf(a.client).list(ctx, a.key, ask, func(nodes []Node) bool {
		return fresh && Index(nodes, a.self.Name) >= 0
	})
}
