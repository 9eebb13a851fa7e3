package framework

import (
	"context"
	"errors"
)

// A beginning is a Watch whose read is under way.
type beginning struct {
	watch  *Watch
	disarm func()                      // nil if the server has the watch
	read   *pending[*nodeState]        // nil if no read is needed
	again  func() *pending[*nodeState] // begins a read that is not shared
	anew   func() *beginning           // begins the Watch again
	armed  bool                        // the server had the watch before
	shared bool                        // other Watches may use the result
	others bool                        // the read is another Watch's
}

// beginWatch registers before it reads, so no event can be missed. If the server has the watch
// already, a plain read is enough; it shows whether the server has dropped an event of that watch.
// If shared is true, an earlier read or a read that is under way replaces the read.
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
		// Arm before sharing a read: that read may not have been sent yet, and its caller may
		// withdraw.
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

// wait returns the Watch once its read has been answered. If another Watch's read found no znode,
// the znode may have been created since, so wait reads again.
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

// end releases the arming of the path once the read's outcome is recorded for other Watches. From
// then on no other Watch shares the read.
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
