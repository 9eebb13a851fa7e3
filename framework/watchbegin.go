package framework

import (
	"context"
	"errors"
)

// A beginning is a Watch whose read is on its way.
type beginning struct {
	watch  *Watch
	disarm func()                      // nil where a watch stands at the server
	read   *pending[*nodeState]        // nil where none is needed
	again  func() *pending[*nodeState] // begins a read that is not shared
	anew   func() *beginning           // begins the Watch again
	armed  bool                        // the server had the watch before
	shared bool                        // what is found may be told to others
	others bool                        // the read is another Watch's
}

// beginWatch registers before it reads, so that no event can come unnoticed.
// While a watch stands at the server, a plain read will do, which shows whether the
// server has dropped an event of that watch. No read is needed
// where shared says so and one has been made before, or is on its way.
func (s *session) beginWatch(
	key watchKey, ask func(*wire) (nodeState, error), shared bool,
) *beginning {
	w, armed := s.watches.join(key)
	w.cfg = &s.core.cfg
	b := &beginning{watch: w, armed: armed, shared: shared}
	b.anew = func() *beginning { return s.beginWatch(key, ask, shared) }
	if armed && shared && s.watches.known(w) {
		return b
	}
	b.again = func() *pending[*nodeState] {
		return begin(s, func(w *wire) (*nodeState, error) {
			found, err := ask(w)
			return &found, err
		})
	}
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
	b.read, own = s.watches.share(w.entry, b.again)
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
	b.watch.found = found
	answered := err == nil || errors.Is(err, ErrNoNode)
	if b.armed && answered && b.watch.registry.missed(b.watch) {
		return b.anew().wait(ctx)
	}
	if b.watch.entry.key.kind == WatchExists && errors.Is(err, ErrNoNode) {
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
	registry, entry := b.watch.registry, b.watch.entry
	if err == nil {
		registry.setArmed(b)
	}
	if !b.others {
		registry.unshare(entry, b.read)
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
