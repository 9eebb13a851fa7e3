package framework

import "context"

// ListTo has the parent's children listed right behind the create, within the
// same round trip, and stores their names: they are those of a moment at which
// the znode had been created. It stores nil where that could not be had, as when
// the znode was found again after its reply was lost; list them then.
func ListTo(names *[]string) CreateOption {
	return createOption(func(cfg *createConfig) { cfg.list = names })
}

// begin sends the create, and behind it the listing if one is wanted: requests of a
// session are served in the order in which they are sent.
func (cr *creation) begin(ctx context.Context, s *session) (*pending[createdNode], *listing) {
	f := s.tap.FollowCreate(cr.path)
	p := begin(s, func(w *wire) (createdNode, error) { return cr.request(f, w) })
	if cr.list == nil {
		return p, nil
	}
	select {
	case <-f.Sent():
	case <-p.done:
	case <-ctx.Done():
	}
	select {
	case <-f.Sent(): // even if it is answered by now
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
	if found, err := l.children.wait(ctx); err == nil {
		*to.list = found.children
	}
}
