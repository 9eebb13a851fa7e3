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
	"github.com/docent-go/docent/testing/zkserver"
)

// always is a fault that can't miss.
func always(name string, weight int, begin func(env *environment, r *rand.Rand, span time.Duration) func()) *faultKind {
	return &faultKind{name: name, weight: weight, begin: func(env *environment, r *rand.Rand, span time.Duration) func() {
		env.count("fault "+name, 1)
		return begin(env, r, span)
	}}
}

// sparing is a fault that harms no client's connection, or names the client that it harms.
func sparing(kind *faultKind) *faultKind {
	kind.spares = true
	return kind
}

func serverKinds() []*faultKind {
	return []*faultKind{
		always("freeze the server", 3, func(env *environment, _ *rand.Rand, _ time.Duration) func() {
			env.srv.Freeze()
			return env.srv.Thaw
		}),
		always("stop the server", 3, func(env *environment, _ *rand.Rand, _ time.Duration) func() {
			env.srv.Refuse()
			env.srv.Cut()
			return env.srv.Accept
		}),
		always("cut all connections", 3, func(env *environment, _ *rand.Rand, _ time.Duration) func() {
			env.srv.Cut()
			return nil
		}),
		always("elect a leader", 3, func(env *environment, _ *rand.Rand, _ time.Duration) func() {
			env.srv.Elect()
			return nil
		}),
		sparing(always("set the server's clock", 3, func(env *environment, r *rand.Rand, _ time.Duration) func() {
			env.srv.ShiftClock(time.Duration(r.Int64N(int64(2*time.Hour))) - time.Hour)
			return nil
		})),
		{name: "expire a session", weight: 3, spares: true, begin: func(env *environment, r *rand.Rand, _ time.Duration) func() {
			if sessions := env.srv.Sessions(); len(sessions) > 0 {
				env.expire(sessions[r.IntN(len(sessions))].ID)
				env.count("fault expire a session", 1)
			}
			return nil
		}},
		{name: "delete a znode", weight: 3, spares: true, begin: func(env *environment, r *rand.Rand, span time.Duration) func() {
			env.deleteSome(r, span)
			return nil
		}},
	}
}

// expire ends a session as an operator can.
func (env *environment) expire(session int64) {
	env.mu.Lock()
	env.killed[session] = true
	env.mu.Unlock()
	_ = env.srv.Expire(session) // it may have ended just now
}

// deleteSome has an operator delete a contender's znode, but not that of an exclusive
// lock: its holder, when it releases, can't tell it from the next holder's.
func (env *environment) deleteSome(r *rand.Rand, span time.Duration) {
	env.mu.Lock()
	defer env.mu.Unlock()
	paths := slices.DeleteFunc(slices.Collect(maps.Keys(env.nodes)), func(path string) bool {
		return slices.ContainsFunc(env.plan.targets, func(t *target) bool { return t.path == path })
	})
	slices.SortFunc(paths, func(a, b string) int { // their names are drawn by their owners
		return cmp.Or(cmp.Compare(env.nodes[a].czxid, env.nodes[b].czxid), strings.Compare(a, b))
	})
	if len(paths) == 0 {
		return
	}
	path := paths[r.IntN(len(paths))]
	czxid := env.nodes[path].czxid
	env.doomed[nodeKey{path, czxid}] = true
	env.counts["fault delete a znode"]++
	env.tasks.Go(func() { // ends with its context at the latest; environment.run waits for it
		ctx, cancel := context.WithTimeout(env.ctx, max(span, time.Second))
		defer cancel()
		err := env.operator.Delete(ctx, path, framework.CreatedBy(czxid))
		env.report("operator", "has deleted "+path, err)
	})
}

func frontKinds() []*faultKind {
	onFront := func(name string, weight int, begin func(f *zkserver.Frontend, r *rand.Rand, span time.Duration) func()) *faultKind {
		kind := always(name, weight, func(env *environment, r *rand.Rand, span time.Duration) func() {
			return begin(env.srv.Frontend(r.IntN(len(env.srv.Frontends()))), r, span)
		})
		kind.ensemble = true
		return kind
	}
	return []*faultKind{
		onFront("freeze a front end", 3, func(f *zkserver.Frontend, _ *rand.Rand, _ time.Duration) func() {
			f.Freeze()
			return f.Thaw
		}),
		onFront("isolate a front end", 4, func(f *zkserver.Frontend, r *rand.Rand, _ time.Duration) func() {
			f.Isolate()
			return func() {
				if r.IntN(2) == 0 {
					f.Cut()
				}
				f.Heal()
			}
		}),
		onFront("slow a front end", 4, func(f *zkserver.Frontend, _ *rand.Rand, span time.Duration) func() {
			f.LagBy(span / 4)
			return f.CatchUp
		}),
		onFront("hold a front end", 3, func(f *zkserver.Frontend, _ *rand.Rand, _ time.Duration) func() {
			f.Hold()
			return f.CatchUp
		}),
		onFront("stop a front end", 3, func(f *zkserver.Frontend, _ *rand.Rand, _ time.Duration) func() {
			f.Refuse()
			f.Cut()
			return f.Accept
		}),
	}
}

func clientKinds() []*faultKind {
	onClient := func(name string, weight int, begin func(env *environment, c *client, span time.Duration) func()) *faultKind {
		return sparing(always(name, weight, func(env *environment, r *rand.Rand, span time.Duration) func() {
			return begin(env, env.clients[r.IntN(len(env.clients))], span)
		}))
	}
	return []*faultKind{
		onClient("cut a client's line", 6, func(env *environment, c *client, _ time.Duration) func() {
			env.harm(c, 0)
			c.line.cut()
			return nil
		}),
		onClient("lose what a client sends and is sent", 6, func(env *environment, c *client, span time.Duration) func() {
			env.harm(c, span)
			c.line.set(false, true)
			return func() {
				c.line.set(false, false)
				c.line.cut()
			}
		}),
		onClient("cut a client off", 6, func(env *environment, c *client, span time.Duration) func() {
			env.harm(c, span)
			c.line.set(true, false)
			c.line.cut()
			return func() { c.line.set(false, false) }
		}),
		onClient("close a client", 4, func(env *environment, c *client, _ time.Duration) func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.closing {
				return nil
			}
			c.closing = true
			env.tasks.Go(func() { // ends with Close; environment.run waits for it
				c.restart()
				c.mu.Lock()
				defer c.mu.Unlock()
				c.closing = false
			})
			return nil
		}),
	}
}
