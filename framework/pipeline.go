package framework

import (
	"context"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/internal/zkconn"
	"github.com/docent-go/docent/internal/proto"
)

// ListTo lists the parent's children right after the create, within the same round trip. It stores
// their names as they were at a moment after the creation. It stores nil if there is no listing, as
// when the znode was found again after its reply was lost; list the children then.
func ListTo(names *[]string) CreateOption { return ListAtTo("", names) }

// ListAtTo does what [ListTo] does for the children of dir instead of the parent's. Both may be given.
func ListAtTo(dir string, names *[]string) CreateOption {
	return createOption(func(cfg *createConfig) {
		if names != nil {
			cfg.lists = append(cfg.lists, listTo{dir, names})
			cfg.given |= withList
		}
	})
}

// A listTo is a directory to be listed after the create.
type listTo struct {
	dir   string // "" for the parent
	names *[]string
}

// WatchTo watches the new znode right after the create, within the same round trip, as
// [Client.Watch] with [WatchExists] does. It stores the Watch, which the caller has to close. It
// stores nil if Create fails, if Create finds its znode again after the reply was lost, or if
// another client deleted the znode. It also stores nil with [Sequential], because only the reply
// has the path. If it stored nil, call Watch.
func WatchTo(watch **Watch) CreateOption {
	return createOption(func(cfg *createConfig) {
		cfg.watch = watch
		if watch != nil {
			cfg.given |= withWatch
		}
	})
}

// A sentCreate is a create that was sent, and the requests that were sent after it.
type sentCreate struct {
	*session.Pending[createdNode]
	lists listings
	watch *beginning // nil if none was sent
}

// begin sends the create, and after it the listing and the watch if the options ask for them. A
// server serves a session's requests in the order in which they are sent.
func (cr *creation) begin(ctx context.Context, s *session.Session) sentCreate {
	f := s.Tap().FollowCreate(cr.path)
	sent := sentCreate{Pending: session.Begin(s, func(w *zkconn.Conn) (createdNode, error) { return cr.request(f, w) })}
	watches := cr.watch != nil && !cr.has(withSequential)
	if cr.lists == nil && !watches {
		return sent
	}
	select {
	case <-f.Sent():
	case <-sent.Done():
	case <-ctx.Done():
	}
	select {
	case <-f.Sent(): // even if the reply is here by now
	default:
		return sent
	}
	sent.lists = cr.beginLists(s)
	if watches {
		key := watchreg.Key{Kind: watchreg.Exists, Path: cr.path}
		begun := cr.core.beginWatch(s, key, readOf(key), false)
		sent.watch = &begun
	}
	return sent
}

// storeWatch waits for the watch and stores it if it is on the znode that was created. err is the
// create's error; if it is nil, made is the znode.
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
	case fault != nil: // a later call of Watch returns it, too
	case err != nil || !made.known || w.sub.Found().Stat.Czxid != made.stat.Czxid:
		w.Close()
	default:
		*cr.watch = w
	}
}

// listings are those that were sent after a create, in the order of the options; nil if none was sent.
type listings []*session.Pending[proto.Node]

// beginLists sends the listings that the options ask for.
func (cr *creation) beginLists(s *session.Session) listings {
	var sent listings
	for _, l := range cr.lists {
		dir := l.dir
		if dir == "" {
			dir, _ = SplitPath(cr.path)
		}
		sent = append(sent, session.Begin(s, func(w *zkconn.Conn) (proto.Node, error) { return w.Children(dir) }))
	}
	return sent
}

// store waits for the listings and stores them, unless the create failed with err.
func (ls listings) store(ctx context.Context, to *createConfig, err error) {
	for i, l := range to.lists {
		*l.names = nil
		if ls == nil || err != nil {
			continue
		}
		if found, err := ls[i].Wait(ctx); err == nil {
			*l.names = found.Children
		}
	}
}
