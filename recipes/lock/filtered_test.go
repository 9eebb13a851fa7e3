package lock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// From 3.8.4 and 3.9.2 on, ZooKeeper drops a watch event if the session may not read its znode at
// that moment. The one-shot watch is lost with it. These tests lose events that way.

// anyPath returns a path below dir that no other test uses, nor another run of the same one.
func anyPath(dir string) string { return framework.JoinPath(dir, strings.ToLower(rand.Text())) }

// closeTo takes every permission on the znode from all but the operator.
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
	for _, k := range kindsThat(inQueue) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				path := anyPath("/replaced-unseen")
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
				mustWaitOn(t, done)
				mustRelease(t, held)
				mustRelease(t, must.Receive(t, done, "the grant").lease)
			})
		})
	}
}

// TestDeletionOfTheUnfairZnodeUnseen is the same for the lock that has no queue.
func TestDeletionOfTheUnfairZnodeUnseen(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		path := anyPath("/unfair-unseen")
		client := env.Client(t, framework.WithSessionTimeout(4*time.Second))
		operator := newOperator(t, env)
		held := mustLock(t, newUnfairMutex(t, operator, path))
		done := lockLater(t.Context(), newUnfairMutex(t, client, path))
		mustWaitOn(t, done)
		closeTo(t, operator, held.Node())
		mustRelease(t, held)
		mustRelease(t, must.Receive(t, done, "the grant").lease)
	})
}

// TestDeletionOfThePredecessorUnseen has a holder's znode go while its successor may not read it.
func TestDeletionOfThePredecessorUnseen(t *testing.T) {
	t.Parallel()
	for _, k := range kindsThat(inQueue) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				path := anyPath("/deleted-unseen")
				client, operator := env.Client(t, framework.WithSessionTimeout(4*time.Second)), newOperator(t, env)
				held := mustLock(t, k.lock(t, operator, path))
				done := lockLater(t.Context(), k.lock(t, client, path))
				awaitWaiter(t, done, operator, path)
				closeTo(t, operator, held.Node())
				mustRelease(t, held)
				mustRelease(t, must.Receive(t, done, "the grant").lease)
			})
		})
	}
}

// TestPredecessorThatMayNotBeRead: the event of its deletion would be lost, so the waiter fails.
func TestPredecessorThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		path := anyPath("/closed")
		client, operator := env.Client(t, framework.WithSessionTimeout(4*time.Second)), newOperator(t, env)
		held := mustLock(t, newMutex(t, operator, path))
		done := lockLater(t.Context(), newMutex(t, client, path))
		awaitWaiter(t, done, operator, path)
		closeTo(t, operator, held.Node())
		got := must.Receive(t, done, "the waiter's end")
		if !errors.Is(got.err, framework.ErrNoAuth) || !strings.Contains(got.err.Error(), held.Node()) {
			t.Errorf("%v, want ErrNoAuth with %s", got.err, held.Node())
		}
		awaitContenders(t, operator, path, 1)
		mustRelease(t, held)
	})
}

// TestChangeOfTheLeasesUnseen has the lease of a semaphore mutex go while the directory of the
// leases may not be read by the next one.
func TestChangeOfTheLeasesUnseen(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
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
		mustRelease(t, must.Receive(t, done, "the grant").lease)
	}, zkenv.Versions("on others the event arrives, and the leases may not be listed", zkserver.DefaultVersion, "3.8.4", "3.9.6"))
}

// awaitWaiter waits until there are two znodes in the directory, and until the client that made the
// second one must have set its watches.
func awaitWaiter(t *testing.T, done <-chan result, operator *framework.Client, dir string) {
	t.Helper()
	awaitContenders(t, operator, dir, 2)
	mustWaitOn(t, done)
}

func mustWaitOn(t *testing.T, done <-chan result) {
	t.Helper()
	zktest.Never(t, 200*time.Millisecond, "a second holder", func() bool { return len(done) > 0 })
}
