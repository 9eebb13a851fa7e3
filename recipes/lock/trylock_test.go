package lock_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// TestTryLockWhileAReleaseIsUnknown: a try whose first listing is out of date is granted by the
// listing behind the sync.
func TestTryLockWhileAReleaseIsUnknown(t *testing.T) {
	t.Parallel()
	eachKindInVirtualTime(t, kindsThat(inQueue), func(t *testing.T, k kind, srv *zkserver.Server) {
		const path = "/try/unknown-release"
		holder, c := atFrontend(t, srv, 1), atFrontend(t, srv, 2)
		held := mustLock(t, k.lock(t, holder, path))
		synctest.Wait()
		srv.Frontend(2).LagBy(200 * time.Millisecond)
		mustRelease(t, held)
		if names, _, err := c.Children(t.Context(), path); err != nil || len(names) != 1 {
			t.Fatalf("children %v (%v), want the one that the follower still has", names, err)
		}
		lease, err := k.lock(t, c, path).TryLock(t.Context())
		if err != nil {
			t.Fatalf("TryLock of a lock that was released: %v", err)
		}
		srv.Frontend(2).CatchUp()
		mustRelease(t, lease)
	}, zkserver.WithFrontends(3))
}

// TestARefusalNamesThePath once, with the operation and why.
func TestARefusalNamesThePath(t *testing.T) {
	t.Parallel()
	eachKindInVirtualTime(t, kinds, func(t *testing.T, k kind, srv *zkserver.Server) {
		const path = "/refused"
		held := mustLock(t, k.rivalOf(t, virtualClient(t, srv), path))
		await(time.Second)
		text := fmt.Sprint(errOf(k.lock(t, virtualClient(t, srv), path).TryLock(t.Context())))
		if !strings.HasPrefix(text, "lock: try lock ") || !strings.Contains(text, path) ||
			!strings.HasSuffix(text, ": "+lock.ErrHeld.Error()) || strings.Count(text, ": ") != 2 {
			t.Errorf("error %q, want the operation, the path and %q", text, lock.ErrHeld)
		}
		mustRelease(t, held)
	})
}

// TestTryLockThatComesSecond is overtaken between its look and its create. It is
// refused without a further word even where its znode was deleted for it, by an
// operator or with its session.
func TestTryLockThatComesSecond(t *testing.T) {
	t.Parallel()
	for name, meddle := range map[string]func(t *testing.T, operator *framework.Client, route *zkenv.Route, path string){
		"nobody meddles":                  func(*testing.T, *framework.Client, *zkenv.Route, string) {},
		"an operator deletes its znode":   deleteSecond,
		"its session ends before it asks": func(t *testing.T, _ *framework.Client, route *zkenv.Route, _ string) { route.Expire(t) },
	} {
		envSubtest(t, name, func(t *testing.T, env *zkenv.Env) {
			path := "/try/second/" + name
			c, route := onRoute(t, env)
			other, operator := env.Client(t), env.Client(t) // now, because a request can't be held for long
			late := route.Rules().Add(fault.Rule{Op: fault.Create, Path: path + "/*", Action: fault.HoldRequest})
			gone := route.Rules().Add(fault.Rule{Op: fault.Delete, Path: path + "/*", Action: fault.HoldRequest})
			defer gone.Release()
			defer late.Release()
			refused := lockLater(t.Context(), tryLock{newMutex(t, c, path)})
			must.Receive(t, late.Hit(), "the create")
			held := mustLock(t, newMutex(t, other, path))
			late.Release()
			must.Receive(t, gone.Hit(), "the delete of what came second")
			meddle(t, operator, route, path)
			gone.Release()
			err := failed(t, refused, "the refusal")
			want := "lock: try lock " + path + ": " + lock.ErrHeld.Error()
			if err == nil || err.Error() != want {
				t.Errorf("error %q, want %q", err, want)
			}
			awaitContenders(t, operator, path, 1)
			mustRelease(t, held)
		})
	}
}

// deleteSecond deletes the last contender's znode.
func deleteSecond(t *testing.T, operator *framework.Client, _ *zkenv.Route, path string) {
	t.Helper()
	awaitContenders(t, operator, path, 2)
	names := contenders(t, operator, path)
	last := slices.MaxFunc(names, bySequence)
	deleteNode(t, operator, path+"/"+last)
	zktest.Eventually(t, generous, "the holder stands alone", func() bool { return len(contenders(t, operator, path)) == 1 })
}
