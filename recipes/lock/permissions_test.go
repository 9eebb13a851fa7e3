package lock_test

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// digest returns the ACL entry of a user and password, as docs/security.md has it.
func digest(user, password string, perms acl.Permission) acl.Entry {
	sum := sha1.Sum([]byte(user + ":" + password))
	return acl.Entry{Perms: perms, Scheme: "digest", ID: user + ":" + base64.StdEncoding.EncodeToString(sum[:])}
}

// A service may only read, create and delete in a lock's directory, and nothing elsewhere. It can
// use the lock with znodes that only it can read. Each of the three permissions is needed.
func TestTheLeastPrivilegeOfALock(t *testing.T) {
	t.Parallel()
	const all = acl.Read | acl.Create | acl.Delete
	cases := map[string]struct {
		perms acl.Permission
		want  error
	}{
		"with all three":        {all, nil},
		"without create":        {all &^ acl.Create, framework.ErrNoAuth},
		"without read":          {all &^ acl.Read, framework.ErrNoAuth},
		"without delete":        {all &^ acl.Delete, framework.ErrNoAuth},
		"with write and admin":  {acl.Write | acl.Admin, framework.ErrNoAuth},
		"with one of the three": {acl.Create, framework.ErrNoAuth},
	}
	for name, c := range cases {
		virtualSubtest(t, name, func(t *testing.T, srv *zkserver.Server) {
			operators := digest("operator", "secret", acl.All)
			operator := virtualClient(t, srv, framework.WithAuth("digest", []byte("operator:secret")))
			must.Get(operator.Create(t.Context(), "/locks", nil, framework.WithACL(operators)))(t)
			must.Get(operator.Create(t.Context(), "/locks/report", nil, framework.WithACL(operators, digest("service", "word", c.perms))))(t)
			for range 2 {
				service := virtualClient(t, srv, framework.WithAuth("digest", []byte("service:word")))
				wantErr(t, "Do", useOnce(t, newMutex(t, service, "/locks/report", recipes.WithACL(acl.Creator()...))), c.want)
				if c.want != nil {
					return // a znode that can't be deleted blocks the second
				}
			}
		})
	}
}

// useOnce locks the mutex, reads its participants, and releases it.
func useOnce(t *testing.T, m *lock.Mutex) error {
	t.Helper()
	return lock.Do(t.Context(), m, func(ctx context.Context, _ *lock.Lease) error {
		participants, err := m.Participants(ctx)
		if err == nil && (len(participants) != 1 || !participants[0].Holder || participants[0].Metadata == nil) {
			t.Errorf("participants %v, want the holder with its metadata", participants)
		}
		return err
	})
}

// closeTo takes every permission on the znode from all but the operator. From 3.8.4 and 3.9.2 on, ZooKeeper drops a
// watch event if the session may not read its znode at that moment. The one-shot watch is lost with it.
func closeTo(t *testing.T, operator *framework.Client, path string) {
	t.Helper()
	must.Get(operator.SetACL(t.Context(), path, []acl.Entry{digest("operator", "secret", acl.All)}, framework.AnyVersion))(t)
}

func newOperator(t *testing.T, env *zkenv.Env) *framework.Client {
	t.Helper()
	return env.Client(t, framework.WithAuth("digest", []byte("operator:secret")))
}

// TestDirectoryReplacedUnseen removes the directory of a lock and makes it again while a client
// that has used it may not read it. The other client's lease must exclude that client.
func TestDirectoryReplacedUnseen(t *testing.T) {
	t.Parallel()
	const earlier = 4 // contenders, as many as in the new directory
	eachKindAndEnv(t, kindsThat(inQueue), func(t *testing.T, env *zkenv.Env, k kind, path string) {
		client, operator := env.Client(t), newOperator(t, env)
		ours, theirs := k.lock(t, client, path), k.lock(t, operator, path)
		createDirs(t, client, path)
		for range earlier {
			mustRelease(t, mustLock(t, ours))
		}
		closeTo(t, operator, path)
		deleteNode(t, operator, path)
		createDirs(t, operator, path)
		for range earlier - 1 {
			mustRelease(t, mustLock(t, theirs))
		}
		held := mustLock(t, theirs)
		done := lockLater(t.Context(), ours)
		awaitContenders(t, operator, path, 2)
		mustWait(t, "a second holder", done)
		mustRelease(t, held)
		mustRelease(t, granted(t, done, "the grant"))
	})
}

// TestDeletionOfThePredecessorUnseen has a holder's znode go while the waiter may not read it.
func TestDeletionOfThePredecessorUnseen(t *testing.T) {
	t.Parallel()
	byZnode := kindsThat(func(k kind) bool { return k.queue || k.name == "unfair mutex" })
	eachKindAndEnv(t, byZnode, func(t *testing.T, env *zkenv.Env, k kind, path string) {
		client, operator := env.Client(t, framework.WithSessionTimeout(4*time.Second)), newOperator(t, env)
		held := mustLock(t, k.lock(t, operator, path))
		done := lockLater(t.Context(), k.lock(t, client, path))
		if k.queue {
			awaitContenders(t, operator, path, 2)
		}
		mustWait(t, "a second holder", done)
		closeTo(t, operator, held.Node())
		mustRelease(t, held)
		mustRelease(t, granted(t, done, "the grant"))
	})
}

// TestPredecessorThatMayNotBeRead: the event of its deletion would be lost, so the waiter fails. So it does if it may
// not read its own znode.
func TestPredecessorThatMayNotBeRead(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		for _, which := range []string{"predecessor", "own"} {
			path := anyPath("/closed-" + which)
			client, operator := env.Client(t, framework.WithSessionTimeout(4*time.Second)), newOperator(t, env)
			held := mustLock(t, newMutex(t, operator, path))
			waiter := newMutex(t, client, path)
			done := lockLater(t.Context(), waiter)
			awaitWaiter(t, done, operator, path)
			closed := held.Node()
			if which == "own" {
				closed = participantsOf(t, waiter)[1].Path
			}
			closeTo(t, operator, closed)
			got := must.Receive(t, done, "the waiter's end")
			if !errors.Is(got.Err, framework.ErrNoAuth) || !strings.Contains(got.Err.Error(), closed) {
				t.Errorf("%v, want ErrNoAuth with %s", got.Err, closed)
			}
			awaitContenders(t, operator, path, 1)
			mustRelease(t, held)
		}
	})
}

// TestChangeOfTheLeasesUnseen has the lease of a semaphore mutex go while the directory of the
// leases may not be read by the next one.
func TestChangeOfTheLeasesUnseen(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		path := anyPath("/leases-unseen")
		client, operator := env.Client(t, framework.WithSessionTimeout(4*time.Second)), newOperator(t, env)
		held := mustLock(t, newSemaphoreMutex(t, operator, path))
		done := lockLater(t.Context(), newSemaphoreMutex(t, client, path))
		awaitWaiter(t, done, operator, path+"/leases")
		closeTo(t, operator, path+"/leases")
		ctx, cancel := context.WithTimeout(t.Context(), generous)
		defer cancel()
		must.OK(t, held.Release(ctx))
		must.Get(operator.SetACL(t.Context(), path+"/leases", acl.Open(), framework.AnyVersion))(t)
		mustRelease(t, granted(t, done, "the grant"))
	}, zkenv.Versions("on others the event arrives, and the leases may not be listed", zkserver.DefaultVersion, "3.8.4", "3.9.6"))
}

// awaitWaiter waits until there are two znodes in the directory, and until the client that made the
// second one must have set its watches.
func awaitWaiter(t *testing.T, done <-chan result, operator *framework.Client, dir string) {
	t.Helper()
	awaitContenders(t, operator, dir, 2)
	mustWait(t, "a second holder", done)
}

// The ACL that an option gives, or else the client, is that of a lease's znode, however it was taken, and of the
// directories that the lock has created for it.
func TestLeasesHaveTheACLOfTheOption(t *testing.T) {
	t.Parallel()
	eachKindInVirtualTime(t, with(kindsWithZnode(), permits, candidate), func(t *testing.T, k kind, srv *zkserver.Server) {
		c := virtualClient(t, srv)
		want := acl.Entry{Perms: acl.All &^ acl.Admin, Scheme: "world", ID: "anyone"}
		asked := virtualClient(t, srv, framework.WithACLProvider(func(string) []acl.Entry { return []acl.Entry{want} }))
		given, provided := k.lock(t, c, "/refusal/acl", recipes.WithACL(want)), k.lock(t, asked, "/refusal/provided")
		all := []lock.Locker{given, given, provided}
		if !k.noTry {
			all = append(all, tryLock{given}, tryLock{provided})
		}
		for _, l := range all {
			lease := mustLock(t, l)
			for node := lease.Node(); node != "/"; node = path.Dir(node) {
				if acl, _, err := c.ACL(t.Context(), node); err != nil || len(acl) != 1 || acl[0] != want {
					t.Errorf("%s has the ACL %v, %v, want %v", node, acl, err, want)
				}
			}
			mustRelease(t, lease)
		}
	})
}

// kindsWithZnode are the kinds but for multi, which has no znode of its own.
func kindsWithZnode() []kind { return kindsThat(func(k kind) bool { return k.name != "multi" }) }

// A lease is lost when the connection breaks. Its znode goes before its session ends, even if the holder may not
// read it any more.
func TestALossLeavesNoZnodeThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	eachKindInVirtualTime(t, kindsWithZnode(), func(t *testing.T, k kind, srv *zkserver.Server) {
		const path = "/lost"
		c := virtualClient(t, srv, framework.WithSessionTimeout(40*time.Second))
		operator := virtualClient(t, srv, framework.WithAuth("digest", []byte("operator:secret")))
		held := mustLock(t, k.lock(t, c, path, recipes.WithLossPolicy(lease.OnSuspend)))
		node, session := held.Node(), c.Session().ID
		closeTo(t, operator, node)
		srv.Cut()
		must.Receive(t, held.Lost(), "the loss")
		wantErr(t, "lease", held.Err(), errSuspended)
		await(10 * time.Second)
		if slices.Contains(srv.Paths(), node) || c.Session().ID != session {
			t.Errorf("the znodes %q in session %#x; want none in session %#x", znodesBelow(srv, path), c.Session().ID, session)
		}
	}, zkserver.WithVersion("3.9.6"))
}

// As Curator's testNodeDeletedCleanlyWithFaults: the queue can't be listed, for good. Several attempts share the
// listing, and get its error, even if the clean-up fails at first.
func TestCuratorQueueThatCanNotBeListed(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		const path, attempts = "/curator-unreadable", 12
		c, route := onRoute(t, env)
		operator := newOperator(t, env) // since 3.8.4 and 3.9.2, exists needs READ
		blind := acl.Entry{Perms: acl.Create | acl.Delete, Scheme: "world", ID: "anyone"}
		_, err := operator.Create(t.Context(), path, nil, framework.WithACL(blind, digest("operator", "secret", acl.All)))
		if err != nil && !errors.Is(err, framework.ErrNodeExists) {
			t.Fatal(err)
		}
		before, _ := must.Get2(operator.Exists(t.Context(), path))(t)
		failing := route.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/*", Action: fault.CutBefore})
		m := newMutex(t, c, path, recipes.WithACL(acl.Open()...))
		var locking []<-chan result
		for range attempts {
			locking = append(locking, lockLater(t.Context(), m))
		}
		wantErr(t, "TryLock", errOf(m.TryLock(t.Context())), framework.ErrNoAuth)
		for _, done := range locking {
			wantErr(t, "Lock", failed(t, done, "the error"), framework.ErrNoAuth)
		}
		zktest.Eventually(t, generous, "the attempts' znodes are gone", func() bool {
			st, ok, err := operator.Exists(t.Context(), path)
			return err == nil && ok && st.NumChildren == 0
		})
		must.Receive(t, failing.Hit(), "the failure to delete")
		if st, _, err := operator.Exists(t.Context(), path); err != nil || st.Cversion == before.Cversion {
			t.Errorf("no child came or went (%v): there was no attempt", err)
		}
	})
}
