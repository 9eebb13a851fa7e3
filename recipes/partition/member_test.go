package partition_test

import (
	"context"
	"errors"
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
	"github.com/docent-go/docent/testing/zkenv"
)

// TestATakenIDIsNotUsed: another process has the id. This one contends for no key of its share.
func TestATakenIDIsNotUsed(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, other, o := recipetest.Path(t), names("key-", 3), env.Client(t), newOracle(t)
		digest := []byte(partition.DigestOf(keys))
		must.Get(other.Create(t.Context(), path+"/members/a", digest, framework.Ephemeral(), framework.WithParents()))(t)
		m := o.start(t, env.Client(t), path, "a", keys)
		<-time.After(10 * settle)
		if now := o.now(); len(now) > 0 {
			t.Errorf("keys %v are served by an id that another process has", now)
		}
		must.OK(t, other.Delete(t.Context(), path+"/members/a"))
		o.await(t, keys, "a")
		m.leave(t)
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded, zkenv.Standalone))
}

// TestAPersistentZnodeIsNoMember: it would have a share that no process serves.
func TestAPersistentZnodeIsNoMember(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, c, o := recipetest.Path(t), names("key-", 4), env.Client(t), newOracle(t)
		digest := []byte(partition.DigestOf(keys))
		must.Get(c.Create(t.Context(), path+"/members/left", digest, framework.WithParents()))(t)
		o.start(t, env.Client(t), path, "a", keys)
		o.await(t, keys, "a")
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded, zkenv.Standalone))
}

// TestRunEndsAtOnceWithoutAServer: during an outage ctx ends, or serve returns an error.
func TestRunEndsAtOnceWithoutAServer(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, want := range map[string]error{"ctx ends": context.Canceled, "serve fails": broken} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			route, keys := env.Route(t), names("key-", 3)
			c := route.Client(t)
			p := must.Get(partition.New(c, recipetest.Path(t), keys, recipes.WithSettle(0)))(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			serving, fail, ended := make(chan string, len(keys)), make(chan struct{}), make(chan error, 1)
			go func() {
				ended <- p.Run(ctx, func(ctx context.Context, key string, _ *lease.Lease) error {
					serving <- key
					select {
					case <-fail:
						return broken
					case <-ctx.Done():
						return ctx.Err()
					}
				})
			}()
			for range keys {
				<-serving
			}
			route.Refuse()
			route.Cut()
			for c.State() == framework.Connected {
				env.Quiesce()
			}
			began := time.Now()
			if want == broken { //nolint:errorlint // this very error
				close(fail)
			} else {
				cancel()
			}
			recipetest.Fails(t, "Run", must.Receive(t, ended, "the end of Run"), want)
			if took := time.Since(began); took > time.Second {
				t.Errorf("Run has returned after %v", took)
			}
			route.Heal()
		}, zkenv.Only("the times are exact in virtual time", zkenv.Embedded))
	}
}

// TestMembersThatMayNotBeListed: at first that ends Run, with the reason. Later the keys stay.
func TestMembersThatMayNotBeListed(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, route, other, o := recipetest.Path(t), names("key-", 3), env.Route(t), env.Client(t), newOracle(t)
		must.Get(other.Create(t.Context(), path+"/members", nil, framework.WithParents(),
			framework.WithACL(acl.Entry{Perms: acl.All &^ acl.Read, Scheme: "world", ID: "anyone"})))(t)
		p := must.Get(partition.New(route.Client(t), path, keys))(t)
		err := p.Run(t.Context(), func(context.Context, string, *lease.Lease) error { return nil })
		if !errors.Is(err, framework.ErrNoAuth) || errors.Is(err, framework.ErrClosed) {
			t.Errorf("Run: %v, want ErrNoAuth", err)
		}
		recipetest.Permit(t, other, path+"/members", acl.All)
		o.start(t, route.Client(t), path, "a", keys)
		o.await(t, keys, "a")
		recipetest.Permit(t, other, path+"/members", acl.All&^acl.Read)
		route.Cut() // so that the members are listed again
		<-time.After(10 * settle)
		o.await(t, keys, "a")
		recipetest.Permit(t, other, path+"/members", acl.All)
		o.start(t, env.Client(t), path, "b", keys)
		o.await(t, keys, "a", "b")
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded, zkenv.Standalone))
}

// TestAMemberThatMayNoLongerListTheMembers: it would keep its keys from the others for good. Its Run ends, and they
// have all keys.
func TestAMemberThatMayNoLongerListTheMembers(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, route, o := recipetest.Path(t), names("key-", 10), env.Route(t), newOracle(t)
		c := env.Client(t, framework.WithAuth("digest", []byte("b:secret")))
		o.start(t, c, path, "b", keys)
		a := must.Get(partition.New(route.Client(t), path, keys, partition.WithID("a"), recipes.WithSettle(settle)))(t)
		ended := make(chan error, 1)
		go func() { ended <- a.Run(t.Context(), o.serve("a")) }()
		o.await(t, keys, "a", "b")
		everyone := acl.Entry{Perms: acl.All &^ acl.Read, Scheme: "world", ID: "anyone"}
		must.Get(c.SetACL(t.Context(), path+"/members", append(acl.Digest("b", "secret"), everyone), framework.AnyVersion))(t)
		route.Cut() // so that the members are listed again
		<-time.After(10 * settle)
		o.await(t, keys, "a", "b")
		<-time.After(time.Minute)
		if len(ended) == 0 {
			t.Fatal("Run goes on after a minute")
		}
		recipetest.Fails(t, "Run", <-ended, framework.ErrNoAuth)
		o.await(t, keys, "b")
	}, zkenv.Only("a minute has to pass", zkenv.Embedded))
}

// TestAMemberThatMayNotJoinLater: another process has the id. When it has left, this one may not join any
// more.
func TestAMemberThatMayNotJoinLater(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, other := recipetest.Path(t), names("key-", 3), env.Client(t)
		must.Get(other.Create(t.Context(), path+"/members/a", nil, framework.Ephemeral(), framework.WithParents()))(t)
		p := must.Get(partition.New(env.Client(t), path, keys, partition.WithID("a")))(t)
		ended := make(chan error, 1)
		go func() { ended <- p.Run(t.Context(), func(context.Context, string, *lease.Lease) error { return nil }) }()
		<-time.After(10 * settle)
		recipetest.Permit(t, other, path+"/members", acl.All&^acl.Create)
		must.OK(t, other.Delete(t.Context(), path+"/members/a"))
		recipetest.Fails(t, "Run", must.Receive(t, ended, "the end of Run"), framework.ErrNoAuth)
	}, zkenv.Only("nothing of it depends on the server", zkenv.Embedded, zkenv.Standalone))
}

// TestKeysWithoutAServerMoveAtOnce: only keys that are served wait for the settle time, which is long.
func TestKeysWithoutAServerMoveAtOnce(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, o, slow := recipetest.Path(t), names("key-", 30), newOracle(t), recipes.WithSettle(time.Hour)
		o.start(t, env.Client(t), path, "a", keys, slow)
		members := []*member{o.start(t, env.Client(t), path, "b", keys, slow), o.start(t, env.Client(t), path, "c", keys, slow)}
		<-time.After(2 * time.Hour)
		o.await(t, keys, "a", "b", "c")
		before, serves := o.now(), o.count()
		members[0].leave(t)
		<-time.After(time.Second)
		if now := o.now(); len(now) != len(keys) {
			t.Errorf("after a second %d keys are served, want all %d", len(now), len(keys))
		}
		for key, id := range o.now() {
			if was := before[key]; was != "b" && was != id {
				t.Errorf("%s moves from %s to %s although it was served", key, was, id)
			}
		}
		if moved := o.count() - serves; moved != 10 {
			t.Errorf("%d keys move, want the 10 of the member that leaves", moved)
		}
		<-time.After(2 * time.Hour)
		o.await(t, keys, "a", "c")
	}, zkenv.Only("hours have to pass", zkenv.Embedded))
}

// TestASettlementThatCannotBeWritten: no member may write it, or its place has other data. The keys are served
// nevertheless, and move at each change.
func TestASettlementThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for name, obstruct := range map[string]func(*testing.T, *framework.Client, string){
		"no permission": func(t *testing.T, c *framework.Client, dir string) {
			t.Helper()
			recipetest.Permit(t, c, dir, acl.All&^acl.Write)
		},
		"other data": func(t *testing.T, c *framework.Client, dir string) {
			t.Helper()
			must.Get(c.Set(t.Context(), dir, []byte("other data"), framework.AnyVersion))(t)
		},
	} {
		recipetest.Subtest(t, name, func(t *testing.T, env *zkenv.Env) {
			core, logs := observer.New(zapcore.WarnLevel)
			path, keys, other, o := recipetest.Path(t), names("key-", 10), env.Client(t), newOracle(t)
			dir := path + "/members"
			must.Get(other.Create(t.Context(), dir, nil, framework.WithParents()))(t)
			obstruct(t, other, dir)
			_, before, err := other.Get(t.Context(), dir)
			must.OK(t, err)
			o.start(t, env.Client(t, framework.WithLogger(zap.New(core))), path, "a", keys)
			b := o.start(t, env.Client(t), path, "b", keys)
			o.await(t, keys, "a", "b")
			b.leave(t)
			o.await(t, keys, "a")
			<-time.After(time.Minute)
			if data, after, err := other.Get(t.Context(), dir); err != nil || after.Version != before.Version {
				t.Errorf("the directory was written: %q, %v", data, err)
			}
			if n := logs.Len(); n != 1 {
				t.Errorf("%d warnings, want one: %v", n, logs.All())
			}
		}, zkenv.Only("a minute has to pass", zkenv.Embedded))
	}
}

// TestASettlementThatNobodyMayReplace: members that come have no keys until half of those that have some are gone.
func TestASettlementThatNobodyMayReplace(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, other, o := recipetest.Path(t), names("key-", 10), env.Client(t), newOracle(t)
		o.start(t, env.Client(t), path, "a", keys)
		b := o.start(t, env.Client(t), path, "b", keys)
		o.await(t, keys, "a", "b")
		<-time.After(time.Minute)
		recipetest.Permit(t, other, path+"/members", acl.All&^acl.Write)
		o.start(t, env.Client(t), path, "c", keys)
		<-time.After(time.Hour)
		o.await(t, keys, "a", "b")
		b.leave(t)
		o.await(t, keys, "a", "c")
		d := o.start(t, env.Client(t), path, "d", keys)
		o.await(t, keys, "a", "c", "d")
		d.leave(t)
		o.await(t, keys, "a", "c")
	}, zkenv.Only("an hour has to pass", zkenv.Embedded))
}

// TestAKeyThatThisMemberMayNotRead: a contender ahead at a key denies it. A member that goes on would keep the key from
// those that may, so its Run ends, with the key's path, and they have all keys.
func TestAKeyThatThisMemberMayNotRead(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path, keys, o := recipetest.Path(t), names("key-", 1), newOracle(t)
		may := env.Client(t, framework.WithAuth("digest", []byte("b:secret")))
		foreign := must.Get(may.Create(t.Context(), path+"/keys/"+keys[0]+"/lock-", nil, framework.WithParents(), framework.Ephemeral(),
			framework.Sequential(), framework.Protected()))(t)
		must.Get(may.SetACL(t.Context(), foreign, acl.Digest("b", "secret"), framework.AnyVersion))(t)
		a := must.Get(partition.New(env.Client(t), path, keys, partition.WithID("a"), recipes.WithSettle(settle)))(t)
		ended := make(chan error, 1)
		go func() { ended <- a.Run(t.Context(), o.serve("a")) }()
		err := must.Receive(t, ended, "the end of Run")
		recipetest.Fails(t, "Run", err, framework.ErrNoAuth)
		recipetest.Says(t, err, path+"/keys/"+keys[0])
		o.start(t, may, path, "b", keys)
		must.OK(t, may.Delete(t.Context(), foreign))
		o.await(t, keys, "b")
	}, zkenv.Only("the servers have no part in it", zkenv.Embedded))
}
