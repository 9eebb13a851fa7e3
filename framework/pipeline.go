package framework

import "context"

// ListTo has the parent's children listed right behind the create, within the
// same round trip, and stores their names: they are those of a moment at which
// the znode had been created. It stores nil where that could not be had, as when
// the znode was found again after its reply was lost; list them then.
func ListTo(names *[]string) CreateOption {
	return createOption(func(cfg *createConfig) { cfg.list = names })
}

// ListStatTo stores in st the parent's Stat as the listing of [ListTo] found it,
// and leaves st as it is where that could not be had.
func ListStatTo(st *Stat) CreateOption {
	return createOption(func(cfg *createConfig) { cfg.dir = st })
}

// OnCreated has fn called with the path that the znode got and its Stat, once the
// reply that tells of them has arrived: before a Watch fires because of what happened
// after the creation, and in the order in which znodes of the client's session were
// created. It is not called where the znode was found again after its reply was lost, nor by
// [Client.CreateAll]. fn is called by what reads from the server, so it must not
// block, nor call the client.
func OnCreated(fn func(path string, st Stat)) CreateOption {
	return createOption(func(cfg *createConfig) { cfg.arrived = fn })
}

// begin sends the create, and behind it the listing if one is wanted: requests of a
// session are served in the order in which they are sent.
func (cr *creation) begin(ctx context.Context, s *session) (*pending[createdNode], *listing) {
	create := func(w *wire) (createdNode, error) { return cr.request(s, w) }
	if cr.list == nil {
		return begin(s, create), nil
	}
	left, forget := s.tap.Leaving(cr.path)
	defer forget()
	p := begin(s, create)
	select {
	case <-left:
	case <-p.done:
	case <-ctx.Done():
	}
	select {
	case <-left: // even if it is answered by now
		dir, _ := SplitPath(cr.path)
		return p, &listing{begin(s, func(w *wire) (nodeState, error) { return w.children(dir) })}
	default:
		return p, nil
	}
}

// A listing is what was asked for behind a create; nil if nothing was.
type listing struct{ children *pending[nodeState] }

// store waits for what was found and stores it, unless the create failed with err.
func (l *listing) store(ctx context.Context, to *createConfig, err error) {
	if to.list == nil {
		return
	}
	*to.list = nil
	if l == nil || err != nil {
		return
	}
	found, err := l.children.wait(ctx)
	if err != nil {
		return
	}
	*to.list = found.children
	if to.dir != nil {
		*to.dir = found.stat
	}
}
