package framework

import (
	"context"

	"github.com/docent-go/docent/internal/ctxerr"
)

// A beginning is a Watch whose read is on its way.
type beginning struct {
	watch  *Watch
	entry  *watchEntry
	disarm func()                     // nil where a watch stands at the server
	read   *pending[nodeState]        // nil where none is needed
	again  func() *pending[nodeState] // begins a read that is not shared
	anew   func() *beginning          // begins the Watch again
	armed  bool                       // the server had the watch before
	shared bool                       // what is found may be told to others
	others bool                       // the read is another Watch's
}

// beginWatch registers before it reads, so that no event can come unnoticed.
// While a watch stands at the server, a plain read will do, which shows whether the
// server has dropped an event of that watch. No read is needed
// where shared says so and one has been made before, or is on its way.
func (s *session) beginWatch(key watchKey, ask func(*wire) (nodeState, error), shared bool) *beginning {
	w, entry, armed := s.watches.join(key)
	w.cfg = &s.core.cfg
	b := &beginning{watch: w, entry: entry, armed: armed, shared: shared}
	b.anew = func() *beginning { return s.beginWatch(key, ask, shared) }
	if armed && shared && s.watches.known(w, entry) {
		return b
	}
	b.again = func() *pending[nodeState] { return begin(s, ask) }
	if !armed {
		// Before it shares a read: that may not have been sent yet, and who began it
		// may give up.
		b.disarm = s.tap.Arm(key.kind.read(), key.path)
	}
	if armed || !shared {
		b.read = b.again()
		return b
	}
	var own bool
	b.read, own = s.watches.share(entry, b.again)
	b.others = !own
	return b
}

// wait returns the Watch once its read has been answered. What another one's read
// found missing may have come since, so that is looked for again.
func (b *beginning) wait(ctx context.Context) (*Watch, error) {
	if b.read == nil {
		return b.watch, nil
	}
	found, err := b.read.wait(ctx)
	if b.others && err != nil && ctx.Err() == nil && !Retryable(err) {
		found, err = b.again().wait(ctx)
	}
	if b.others {
		found = found.clone()
	}
	b.watch.found = found
	key := b.watch.key
	if answered := err == nil || ctxerr.Is(err, ErrNoNode); b.armed && answered && b.watch.registry.missed(b.watch, b.entry) {
		return b.anew().wait(ctx)
	}
	if key.kind == WatchExists && ctxerr.Is(err, ErrNoNode) {
		err = nil
	}
	b.end(err)
	if err != nil {
		b.watch.Close()
		return nil, err
	}
	return b.watch, nil
}

// end lets go of what kept the path armed, once what came of the read is known to
// others: from then on nobody shares it.
func (b *beginning) end(err error) {
	registry := b.watch.registry
	if err == nil {
		registry.setArmed(b)
	}
	if !b.others {
		registry.unshare(b.entry, b.read)
	}
	if b.disarm != nil {
		b.disarm()
	}
}

func (key watchKey) ask(w *wire) (nodeState, error) {
	switch key.kind {
	case WatchExists:
		return w.exists(key.path)
	case WatchChildren:
		return w.children(key.path)
	default:
		return w.get(key.path)
	}
}
