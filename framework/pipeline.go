package framework

import "context"

// ListTo has the parent's children listed right behind the create, within the
// same round trip, and stores their names: they are those of a moment at which
// the znode had been created. It stores nil where that could not be had, as when
// the znode was found again after its reply was lost; list them then.
func ListTo(names *[]string) CreateOption {
	return createOption(func(cfg *createConfig) {
		cfg.list = names
		if names != nil {
			cfg.given |= withList
		}
	})
}

// WatchTo has the new znode watched right behind the create, within the same round trip, as
// [Client.Watch] with [WatchExists] does, and stores the Watch, which has to be closed. It stores nil
// if that could not be had: if Create fails or finds its znode again after the reply was lost, if
// another client deleted the znode, and with [Sequential], whose path the reply tells. Call Watch then.
func WatchTo(watch **Watch) CreateOption {
	return createOption(func(cfg *createConfig) {
		cfg.watch = watch
		if watch != nil {
			cfg.given |= withWatch
		}
	})
}

// A sentCreate is a create on its way, and what was sent behind it.
type sentCreate struct {
	*pending[createdNode]
	list  *listing
	watch *beginning // nil for none
}

// begin sends the create, and behind it the listing and the watch if they are wanted: requests of a
// session are served in the order in which they are sent.
func (cr *creation) begin(ctx context.Context, s *session) sentCreate {
	f := s.tap.FollowCreate(cr.path)
	sent := sentCreate{pending: begin(s, func(w *wire) (createdNode, error) { return cr.request(f, w) })}
	watches := cr.watch != nil && !cr.has(withSequential)
	if cr.list == nil && !watches {
		return sent
	}
	select {
	case <-f.Sent():
	case <-sent.done:
	case <-ctx.Done():
	}
	select {
	case <-f.Sent(): // even if it is answered by now
	default:
		return sent
	}
	if cr.list != nil {
		dir, _ := SplitPath(cr.path)
		sent.list = &listing{begin(s, func(w *wire) (nodeState, error) { return w.children(dir) })}
	}
	if watches {
		key := watchKey{WatchExists, cr.path}
		sent.watch = s.beginWatch(key, key.ask, false)
	}
	return sent
}

// storeWatch waits for the watch and stores it, if it is of the znode that was made. The create failed
// with err, or made the znode.
func (cr *creation) storeWatch(ctx context.Context, b *beginning, made createdNode, err error) {
	if cr.watch == nil {
		return
	}
	*cr.watch = nil
	if b == nil {
		return
	}
	w, fault := b.wait(ctx)
	switch {
	case fault != nil: // whoever calls Watch meets with it, too
	case err != nil || !made.known || w.found.stat.Czxid != made.stat.Czxid:
		w.Close()
	default:
		*cr.watch = w
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
