package partition_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/partition"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// Members come, go, lose their sessions and their connections; the oracle counts the servers of each key.
func TestNoKeyIsServedTwice(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, o := recipetest.Path(t), names("key-", 12), newOracle(t)
		o.linger = 20 * time.Millisecond
		routes := make(map[string]*zkenv.Route)
		members := make(map[string]*member)
		join := func(id string) {
			routes[id] = env.Route(t)
			members[id] = o.start(t, routes[id].Client(t, framework.WithSessionTimeout(4*time.Second)), path, id, keys)
		}
		join("a")
		o.await(t, keys, "a")
		join("b")
		join("c")
		o.await(t, keys, "a", "b", "c")
		routes["a"].Refuse() // its session ends by its time: one that is ended earlier loses its keys before it knows
		routes["a"].Cut()
		o.await(t, keys, "b", "c")
		routes["a"].Heal()
		routes["b"].Cut()
		env.Quiesce()
		o.await(t, keys, "a", "b", "c")
		members["b"].leave(t)
		o.await(t, keys, "a", "c")
		routes["c"].Refuse()
		routes["c"].Cut()
		o.await(t, keys, "a")
		routes["c"].Heal()
		join("d")
		o.await(t, keys, "a", "c", "d")
		o.mu.Lock()
		defer o.mu.Unlock()
		moved, lost := 0, 0
		for _, cause := range o.causes {
			var loss *lease.LostError
			switch {
			case errors.Is(cause, partition.ErrMoved):
				moved++
			case errors.As(cause, &loss):
				lost++
			}
		}
		if moved == 0 || lost == 0 {
			t.Errorf("%d keys moved, %d leases lost: want both", moved, lost)
		}
	}, zkenv.Only("an ensemble of real servers differs in nothing here", zkenv.Embedded, zkenv.EmbeddedEnsemble, zkenv.Standalone))
}

// After a member has died, its keys are served by the others within the session timeout and what the
// settling takes.
func TestEveryKeyIsServedWithinT(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const timeout = 4 * time.Second
		path, keys, o, route := recipetest.Path(t), names("key-", 10), newOracle(t), env.Route(t)
		o.start(t, env.Client(t), path, "a", keys)
		o.start(t, env.Client(t), path, "b", keys)
		o.start(t, route.Client(t, framework.WithSessionTimeout(timeout)), path, "c", keys)
		o.await(t, keys, "a", "b", "c")
		route.Refuse()
		route.Cut()
		began := time.Now()
		o.await(t, keys, "a", "b")
		if took := time.Since(began); env.Kind().Virtual() && took > timeout+timeout/4+settle+time.Second {
			t.Errorf("the dead member's keys are served after %v, want the session timeout %v and the settle time %v", took, timeout, settle)
		}
		route.Heal()
		o.await(t, keys, "a", "b", "c")
	}, zkenv.Only("the time is exact in virtual time", zkenv.Embedded, zkenv.EmbeddedEnsemble))
}

// kazoo#392: members with different keys don't keep one another waiting forever.
func TestDifferentKeysDoNotStick(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, o := recipetest.Path(t), newOracle(t)
		before, after := names("key-", 8), names("key-", 10)[1:] // key-0 goes, key-8 and key-9 come
		a := o.start(t, env.Client(t), path, "a", before)
		b := o.start(t, env.Client(t), path, "b", before)
		o.await(t, before, "a", "b")
		o.start(t, env.Client(t), path, "c", after)
		all := names("key-", 10)
		served := func() bool { return len(o.now()) == len(all) }
		zktest.Eventually(t, generous, "all keys of both are served", served)
		zktest.Never(t, time.Second, "a key that is not served", func() bool { return !served() })
		a.leave(t)
		o.start(t, env.Client(t), path, "d", after)
		zktest.Eventually(t, generous, "all keys of both are served again", served)
		b.leave(t)
		o.await(t, after, "c", "d")
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded, zkenv.Standalone))
}

// A short outage moves no key, and nor does a change that is over before the members settle.
func TestShortTroubleMovesNoKey(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, o, route := recipetest.Path(t), names("key-", 6), newOracle(t), env.Route(t)
		o.start(t, route.Client(t), path, "a", keys)
		o.start(t, env.Client(t), path, "b", keys)
		o.await(t, keys, "a", "b")
		serves := o.count()
		for range 3 {
			route.Cut()
			env.Quiesce()
		}
		visitor := env.Client(t)
		must.Get(visitor.Create(t.Context(), path+"/members/c", []byte(partition.DigestOf(keys)), framework.Ephemeral()))(t)
		must.OK(t, visitor.Delete(t.Context(), path+"/members/c"))
		<-time.After(3 * settle)
		o.await(t, keys, "a", "b")
		if got := o.count(); got != serves {
			t.Errorf("%d keys were begun to be served by short trouble, want none", got-serves)
		}
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded, zkenv.EmbeddedEnsemble))
}

// A key is given on when its server has returned, and not before.
func TestAKeyMovesWhenItsServerHasReturned(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, o := recipetest.Path(t), names("key-", 4), newOracle(t)
		slow := newOracle(t)
		slow.linger = 15 * time.Second // beyond the warning
		slow.at, slow.fences = o.at, o.fences
		slow.start(t, env.Client(t), path, "a", keys)
		slow.await(t, keys, "a")
		slow.start(t, env.Client(t), path, "b", keys)
		zktest.Never(t, 10*time.Second, "a key of the slow member moves", func() bool {
			return !maps.Equal(slow.now(), owners(partition.Divide(keys, []string{"a"})))
		})
		slow.await(t, keys, "a", "b")
	}, zkenv.Only("the times are exact in virtual time", zkenv.Embedded))
}

// Owners shows the member of each key to all, also to one that does not serve.
func TestOwners(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, o := recipetest.Path(t), names("key-", 70), newOracle(t)
		looking := must.Get(partition.New(env.Client(t), path, keys))(t)
		if !strings.Contains(looking.ID(), "-") {
			t.Errorf("id %q, want one made up", looking.ID())
		}
		if all, err := looking.Owners(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("owners %v, %v before there is a member", all, err)
		}
		o.start(t, env.Client(t), path, "a", keys)
		o.start(t, env.Client(t), path, "b", keys)
		want := owners(partition.Divide(keys, []string{"a", "b"}))
		zktest.Eventually(t, generous, "the owners", func() bool {
			all, err := looking.Owners(t.Context())
			return err == nil && maps.Equal(all, want)
		})
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded, zkenv.Standalone))
}

// An error of serve ends Run, which returns it, once all other servers have returned.
func TestRunEndsByAnErrorOfServe(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, c := recipetest.Path(t), names("key-", 4), env.Client(t)
		p := must.Get(partition.New(c, path, keys, recipes.WithSettle(settle)))(t)
		broken := errors.New("broken")
		o := newOracle(t)
		err := p.Run(t.Context(), func(ctx context.Context, key string, l *lease.Lease) error {
			if key == "key-2" {
				return broken
			}
			return o.serve("a")(ctx, key, l)
		})
		if !errors.Is(err, broken) || len(o.now()) != 0 {
			t.Errorf("Run: %v, want the error of serve; %v are still served", err, o.now())
		}
		none := func() bool { return len(env.Ephemerals(t, c.Session().ID)) == 0 }
		zktest.Eventually(t, generous, "no znode is left", none)
		defer func() {
			if v := recover(); !strings.Contains(fmt.Sprint(v), "a bug of key-") {
				t.Errorf("Run panicked with %v, want the value of serve", v)
			}
			zktest.Eventually(t, generous, "no znode is left after the panic", none)
		}()
		_ = p.Run(t.Context(), func(_ context.Context, key string, _ *lease.Lease) error { panic("a bug of " + key) })
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded))
}

// A server that ends its goroutine, as a failing test does, ends Run with an error that says so: else no member
// would serve its key from then on.
func TestRunEndsWithTheGoroutineOfAServer(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, c := recipetest.Path(t), env.Client(t)
		p := must.Get(partition.New(c, path, names("key-", 4), recipes.WithSettle(settle)))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := p.Run(ctx, func(ctx context.Context, key string, _ *lease.Lease) error {
			if key == "key-2" {
				runtime.Goexit()
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if ctx.Err() != nil || err == nil || !strings.Contains(err.Error(), "key-2") {
			t.Errorf("Run: %v, want an error that names the key", err)
		}
		zktest.Eventually(t, generous, "no znode is left", func() bool { return len(env.Ephemerals(t, c.Session().ID)) == 0 })
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded))
}

// An error that says nothing of the context's end does not end Run if it comes after a key has moved, and is
// logged. If Run's own context has ended, the first one is joined to that end.
func TestAnErrorAfterAKeyHasMovedIsLogged(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		core, logs := observer.New(zapcore.WarnLevel)
		path, keys, o := recipetest.Path(t), names("key-", 12), newOracle(t)
		o.wrong = errors.New("rpc error: code = Canceled")
		first := o.start(t, env.Client(t, framework.WithLogger(zap.New(core))), path, "a", keys)
		o.await(t, keys, "a")
		for i, all := range [][]string{{"a", "b"}, {"a", "b", "c"}} {
			o.start(t, env.Client(t), path, all[i+1], keys)
			o.await(t, keys, all...)
		}
		first.leave(t)
		if !errors.Is(first.err, o.wrong) || strings.Count(first.err.Error(), o.wrong.Error()) != 1 {
			t.Errorf("Run: %v, want the end of its context, and the error of serve once", first.err)
		}
		const line = "the function returned an error after its key had moved"
		if got := logs.FilterMessage(line).FilterField(zap.Error(o.wrong)).Len(); got < 8 {
			t.Errorf("%d lines %q, want one of each of 8 keys", got, line)
		}
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded))
}

// A function that returns nil early is called again.
func TestAServerThatReturnsEarlyIsCalledAgain(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		p := must.Get(partition.New(env.Client(t), recipetest.Path(t), names("key-", 1), recipes.WithSettle(0)))(t)
		ctx, cancel := context.WithCancel(t.Context())
		var fences []int64
		began := time.Now()
		err := p.Run(ctx, func(_ context.Context, _ string, l *lease.Lease) error {
			if fences = append(fences, l.Fence()); len(fences) == 3 {
				recipetest.Says(t, p.Run(ctx, func(context.Context, string, *lease.Lease) error { return nil }), "runs already")
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || !slices.IsSorted(fences) || len(fences) != 3 {
			t.Errorf("Run: %v; fences %v, want three that grow", err, fences)
		}
		if took := time.Since(began); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("three calls in %v, want a second between them", took)
		}
	}, zkenv.Only("the times are exact in virtual time", zkenv.Embedded))
}

// A permanent error ends Run.
func TestRunEndsByWhatDoesNotPass(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		c, path := env.Client(t), "/read-only"
		readable := acl.Entry{Perms: acl.Read, Scheme: "world", ID: "anyone"}
		must.Get(c.Create(t.Context(), path, nil, framework.WithACL(readable)))(t)
		p := must.Get(partition.New(c, path, names("key-", 3)))(t)
		never := func(context.Context, string, *lease.Lease) error { return nil }
		recipetest.Fails(t, "Run without permission", p.Run(t.Context(), never), framework.ErrNoAuth)
		must.OK(t, c.Close())
		recipetest.Fails(t, "Run of a closed client", p.Run(t.Context(), never), framework.ErrClosed)
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded))
}

// Members with and without compression divide the keys, whichever came first. If each left the other out, both
// would contend for all keys.
func TestMembersThatCannotReadEachOtherDivideTheKeys(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]string{{"plain", "packed"}, {"packed", "plain"}, {"packed", "packed-2"}} {
		t.Run(fmt.Sprint(ids), func(t *testing.T) {
			recipetest.InVirtualTime(t, func(t *testing.T, s *zkserver.Server) {
				o, keys := newOracle(t), names("key-", 8)
				client := func(id string) *framework.Client {
					if id == "plain" {
						return recipetest.ClientOf(t, s)
					}
					return recipetest.ClientOf(t, s, framework.WithCompression())
				}
				first := o.start(t, client(ids[0]), "/shards", ids[0], keys)
				o.await(t, keys, ids[0])
				o.start(t, client(ids[1]), "/shards", ids[1], keys)
				o.await(t, keys, ids...)
				first.leave(t)
				o.await(t, keys, ids[1])
				o.start(t, client(ids[0]), "/shards", ids[0], keys)
				o.await(t, keys, ids...)
			})
		})
	}
}

// TestRequestsOfAPartition counts, at the server's door, what the page of the recipe promises.
func TestRequestsOfAPartition(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, o, route := recipetest.Path(t), names("key-", 8), newOracle(t), env.Route(t)
		other := o.start(t, env.Client(t), path, "b", keys)
		o.await(t, keys, "b")
		c := route.Client(t)
		route.ResetRequests()
		a := o.start(t, c, path, "a", keys)
		o.await(t, keys, "a", "b")
		env.Quiesce()
		count := func(dir string) (all []fault.Op) {
			for _, rq := range route.Requests() {
				if strings.HasPrefix(rq.Path, path+dir) {
					all = append(all, rq.Op)
				}
			}
			return all
		}
		for _, key := range keys {
			got := count("/keys/" + key)
			if owners(partition.Divide(keys, []string{"a", "b"}))[key] == "b" && len(got) != 0 {
				t.Errorf("%s, which does not move: requests %v", key, got)
			}
			if len(got) > 4 {
				t.Errorf("%s, which moves: requests %v, want 4 at most", key, got)
			}
		}
		route.ResetRequests()
		<-time.After(time.Minute)
		if got := count(""); len(got) != 0 {
			t.Errorf("a quiet minute: requests %v, want none", got)
		}
		other.leave(t)
		o.await(t, keys, "a")
		route.ResetRequests()
		a.leave(t)
		env.Quiesce()
		for _, key := range keys {
			if got := count("/keys/" + key); !slices.Equal(got, []fault.Op{fault.Delete}) {
				t.Errorf("%s, when its server leaves: requests %v, want one Delete", key, got)
			}
		}
	}, zkenv.Only("a minute has to pass", zkenv.Embedded))
}

// The lease of a key has the spans and metrics of a lock, of the type "partition".
func TestTelemetryOfKeys(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		recorder := recipetest.Record("partition", "shards")
		keys, o := names("key-", 2), newOracle(t)
		m := o.start(t, env.Client(t, recorder.Options()...), recipetest.Path(t), "a", keys, recipes.WithName("shards"))
		o.await(t, keys, "a")
		m.leave(t)
		recorder.MustHaveSpans(t,
			"lock.acquire shards", "lock.acquire shards", "lock.hold", "lock.hold", "lock.release", "lock.release")
		recorder.MustHaveAcquires(t, 2)
	}, zkenv.Only("telemetry is the same in all", zkenv.Embedded, zkenv.Standalone))
}
