package sim_test

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/framework"
)

// always is a fault that can't miss.
func always(name string, weight int, begin func(w *world, r *rand.Rand, span time.Duration) func()) *faultKind {
	return &faultKind{name: name, weight: weight, begin: func(w *world, r *rand.Rand, span time.Duration) func() {
		w.count("fault "+name, 1)
		return begin(w, r, span)
	}}
}

// sparing is a fault that harms no client's connection, or names the client that it harms.
func sparing(kind *faultKind) *faultKind {
	kind.spares = true
	return kind
}

func serverKinds() []*faultKind {
	return []*faultKind{
		always("freeze the server", 3, func(w *world, _ *rand.Rand, _ time.Duration) func() {
			w.srv.Freeze()
			return w.srv.Thaw
		}),
		always("stop the server", 3, func(w *world, _ *rand.Rand, _ time.Duration) func() {
			w.srv.Refuse()
			w.srv.Cut()
			return w.srv.Accept
		}),
		always("cut all connections", 3, func(w *world, _ *rand.Rand, _ time.Duration) func() {
			w.srv.Cut()
			return nil
		}),
		always("elect a leader", 3, func(w *world, _ *rand.Rand, _ time.Duration) func() {
			w.srv.Elect()
			return nil
		}),
		sparing(always("set the server's clock", 3, func(w *world, r *rand.Rand, _ time.Duration) func() {
			w.srv.ShiftClock(time.Duration(r.Int64N(int64(2*time.Hour))) - time.Hour)
			return nil
		})),
		{name: "expire a session", weight: 3, spares: true, begin: func(w *world, r *rand.Rand, _ time.Duration) func() {
			if sessions := w.srv.Sessions(); len(sessions) > 0 {
				w.expire(sessions[r.IntN(len(sessions))].ID)
				w.count("fault expire a session", 1)
			}
			return nil
		}},
		{name: "delete a znode", weight: 3, spares: true, begin: func(w *world, r *rand.Rand, span time.Duration) func() {
			w.deleteSome(r, span)
			return nil
		}},
	}
}

// expire ends a session as an operator can.
func (w *world) expire(session int64) {
	w.mu.Lock()
	w.killed[session] = true
	w.mu.Unlock()
	_ = w.srv.Expire(session) // it may have ended just now
}

// deleteSome has an operator delete a contender's znode, but not that of an exclusive
// lock: its holder, when it releases, can't tell it from the next holder's.
func (w *world) deleteSome(r *rand.Rand, span time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	paths := slices.DeleteFunc(slices.Collect(maps.Keys(w.nodes)), func(path string) bool {
		return slices.ContainsFunc(w.plan.targets, func(t *target) bool { return t.path == path })
	})
	slices.SortFunc(paths, func(a, b string) int { // their names are drawn by their owners
		return cmp.Or(cmp.Compare(w.nodes[a].czxid, w.nodes[b].czxid), strings.Compare(a, b))
	})
	if len(paths) == 0 {
		return
	}
	path := paths[r.IntN(len(paths))]
	czxid := w.nodes[path].czxid
	w.doomed[nodeKey{path, czxid}] = true
	w.counts["fault delete a znode"]++
	w.tasks.Go(func() { // ends with its context at the latest; world.run waits for it
		ctx, cancel := context.WithTimeout(w.ctx, max(span, time.Second))
		defer cancel()
		err := w.operator.Delete(ctx, path, framework.CreatedBy(czxid))
		w.tell("operator", "has deleted "+path, err)
	})
}

func frontKinds() []*faultKind {
	some := func(w *world, r *rand.Rand) int { return r.IntN(len(w.srv.Frontends())) }
	kinds := []*faultKind{
		always("freeze a front end", 3, func(w *world, r *rand.Rand, _ time.Duration) func() {
			f := w.srv.Frontend(some(w, r))
			f.Freeze()
			return f.Thaw
		}),
		always("isolate a front end", 4, func(w *world, r *rand.Rand, _ time.Duration) func() {
			f := w.srv.Frontend(some(w, r))
			f.Isolate()
			return func() {
				if r.IntN(2) == 0 {
					f.Cut()
				}
				f.Heal()
			}
		}),
		always("slow a front end", 4, func(w *world, r *rand.Rand, span time.Duration) func() {
			f := w.srv.Frontend(some(w, r))
			f.LagBy(span / 4)
			return f.CatchUp
		}),
		always("hold a front end", 3, func(w *world, r *rand.Rand, _ time.Duration) func() {
			f := w.srv.Frontend(some(w, r))
			f.Hold()
			return f.CatchUp
		}),
		always("stop a front end", 3, func(w *world, r *rand.Rand, _ time.Duration) func() {
			f := w.srv.Frontend(some(w, r))
			f.Refuse()
			f.Cut()
			return f.Accept
		}),
	}
	for _, k := range kinds {
		k.ensemble = true
	}
	return kinds
}

func clientKinds() []*faultKind {
	some := func(w *world, r *rand.Rand) *client { return w.clients[r.IntN(len(w.clients))] }
	return []*faultKind{
		sparing(always("cut a client's line", 6, func(w *world, r *rand.Rand, _ time.Duration) func() {
			c := some(w, r)
			w.harm(c, 0)
			c.line.cut()
			return nil
		})),
		sparing(always("lose what a client sends and is sent", 6, func(w *world, r *rand.Rand, span time.Duration) func() {
			c := some(w, r)
			w.harm(c, span)
			c.line.set(false, true)
			return func() {
				c.line.set(false, false)
				c.line.cut()
			}
		})),
		sparing(always("cut a client off", 6, func(w *world, r *rand.Rand, span time.Duration) func() {
			c := some(w, r)
			w.harm(c, span)
			c.line.set(true, false)
			c.line.cut()
			return func() { c.line.set(false, false) }
		})),
		sparing(always("close a client", 4, func(w *world, r *rand.Rand, _ time.Duration) func() {
			c := some(w, r)
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.closing {
				return nil
			}
			c.closing = true
			w.tasks.Go(func() { // ends with Close; world.run waits for it
				c.restart()
				c.mu.Lock()
				defer c.mu.Unlock()
				c.closing = false
			})
			return nil
		})),
	}
}
