package lock_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
)

var update = flag.Bool("update", false, "write the golden files of telemetry anew; then read the difference")

// A moment is what happens to a lock of service a, of which other services may
// want something too.
type scenario struct {
	name   string
	only   func(observedKind) bool // nil for all kinds
	happen func(t *testing.T, env *zkenv.Env, k observedKind, a, b *service)
}

func scenarios() []scenario {
	return []scenario{
		{"acquired", nil, acquired},
		{"queued", nil, queued},
		{"timed out", nil, timedOut},
		{"cancelled", nil, cancelled},
		{"refused", nil, refused},
		{"lost", nil, lost},
		{"lost unnoticed", nil, lostUnnoticed},
		{"re-entered", func(k observedKind) bool { return k.reentrant }, reentered},
		{"revoked", func(k observedKind) bool { return k.revocable }, revoked},
	}
}

// TestSpans holds the spans of all kinds of locks at all moments against
// testdata/spans: names, kinds, parents, status, attributes and links.
func TestSpans(t *testing.T) {
	t.Parallel()
	for _, kind := range observedKinds() {
		for _, m := range scenarios() {
			if m.only != nil && !m.only(kind) {
				continue
			}
			t.Run(kind.name+" "+m.name, func(t *testing.T) {
				t.Parallel()
				zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
					a, b := serviceIn(t, env, "a"), serviceIn(t, env, "b")
					m.happen(t, env, kind, a, b)
					checkGolden(t, filepath.Join("testdata", "spans", kind.name, strings.ReplaceAll(m.name, " ", "-")+".txt"),
						ended(a, b).String())
				}, zkenv.Only("in virtual time every run has the same spans", zkenv.Embedded))
			})
		}
	}
}

func checkGolden(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		must.OK(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(got), 0o644)))
		return
	}
	want := must.Get(os.ReadFile(file))(t)
	if got != string(want) {
		t.Errorf("%s (go test -run %s -update writes it anew):\n%s\nwant:\n%s", file, t.Name(), got, want)
	}
}

func named(kind observedKind) lock.Option { return recipes.WithName("orders-" + kind.name) }

// acquired: a gets a free lock, works under it and releases it.
func acquired(t *testing.T, _ *zkenv.Env, k observedKind, a, _ *service) {
	t.Helper()
	ctx, request := a.request(t.Context())
	err := lock.Do(ctx, k.newLocker(t, a.client, named(k)), func(ctx context.Context, _ *lock.Lease) error {
		a.work(ctx)
		return nil
	})
	request.End()
	if err != nil {
		t.Error(err)
	}
}

// queued: a waits until b releases the lock.
func queued(t *testing.T, env *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	holding, theirs := b.request(t.Context())
	blocker := must.Get(k.block(t, b.client).Lock(holding))(t)
	env.Quiesce() // a semaphore mutex leaves its queue after the grant
	ctx, request := a.request(t.Context())
	waiting := lockLater(ctx, k.newLocker(t, a.client))
	env.Quiesce()
	mustRelease(t, blocker)
	theirs.End()
	mustRelease(t, granted(t, waiting, "the lock"))
	request.End()
}

// waitInVain has a wait for b's lock with a context that ends first.
func waitInVain(t *testing.T, env *zkenv.Env, k observedKind, a, b *service, end func(context.Context) (context.Context, func())) {
	t.Helper()
	blocker := mustLock(t, k.block(t, b.client))
	env.Quiesce()
	ctx, request := a.request(t.Context())
	ctx, stop := end(ctx)
	waiting := lockLater(ctx, k.newLocker(t, a.client))
	env.Quiesce()
	stop()
	if got := must.Receive(t, waiting, "the end of the wait"); got.err == nil {
		t.Error("got a lock that somebody else has")
	}
	request.End()
	mustRelease(t, blocker)
}

func timedOut(t *testing.T, env *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	waitInVain(t, env, k, a, b, func(ctx context.Context) (context.Context, func()) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		return ctx, func() {
			<-ctx.Done()
			cancel()
		}
	})
}

func cancelled(t *testing.T, env *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	waitInVain(t, env, k, a, b, func(ctx context.Context) (context.Context, func()) {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel
	})
}

// refused: a tries what b has.
func refused(t *testing.T, env *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	blocker := mustLock(t, k.block(t, b.client))
	env.Quiesce()
	ctx, request := a.request(t.Context())
	if _, err := k.newLocker(t, a.client).TryLock(ctx); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("try: %v, want ErrHeld", err)
	}
	request.End()
	mustRelease(t, blocker)
}

// lost: b, an operator, deletes the znode of a's lock.
func lost(t *testing.T, env *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	ctx, request := a.request(t.Context())
	lease := must.Get(k.newLocker(t, a.client, named(k)).Lock(ctx))(t)
	env.Quiesce() // the watch on the znode is set after a while
	must.OK(t, b.client.Delete(t.Context(), firstOf(lease).Node()))
	must.Receive(t, lease.Lost(), "the loss")
	env.Quiesce()
	if err := lease.Release(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
	request.End()
}

// lostUnnoticed: a's release finds that its znode is gone.
func lostUnnoticed(t *testing.T, _ *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	ctx, request := a.request(t.Context())
	lease := must.Get(k.newLocker(t, a.client).Lock(ctx))(t)
	must.OK(t, b.client.Delete(t.Context(), firstOf(lease).Node()))
	if err := lease.Release(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v, want ErrLost", err)
	}
	request.End()
}

// reentered: a takes the lock a second and a third time while it has it.
func reentered(t *testing.T, _ *zkenv.Env, k observedKind, a, _ *service) {
	t.Helper()
	l := k.newLocker(t, a.client)
	ctx, request := a.request(t.Context())
	err := lock.Do(ctx, l, func(ctx context.Context, _ *lock.Lease) error {
		a.work(ctx)
		inner, span := a.tracer.Start(ctx, "below")
		defer span.End()
		return lock.Do(inner, l, func(ctx context.Context, _ *lock.Lease) error {
			return lock.Do(ctx, l, func(ctx context.Context, _ *lock.Lease) error {
				a.work(ctx)
				return nil
			})
		})
	})
	request.End()
	if err != nil {
		t.Error(err)
	}
}

// revoked: b requests a's release, and a releases.
func revoked(t *testing.T, env *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	released := make(chan error, 1)
	l := k.newLocker(t, a.client, recipes.WithRevocation(func(lease *lock.Lease) { released <- lease.Release(context.Background()) }))
	ctx, request := a.request(t.Context())
	lease := must.Get(l.Lock(ctx))(t)
	env.Quiesce()
	must.OK(t, lock.Revoke(t.Context(), b.client, firstOf(lease).Node()))
	if err := must.Receive(t, released, "the release"); err != nil {
		t.Error(err)
	}
	request.End()
}
