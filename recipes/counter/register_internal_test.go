package counter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/testing/zkserver"
)

const registerPath = "/register"

// A registerFixture is a register on an embedded server, in virtual time.
type registerFixture struct {
	server *zkserver.Server
	client *framework.Client
	register
}

// registerVirtually runs the body with a register that has no znode. At the end no goroutine may be left.
func registerVirtually(t *testing.T, body func(t *testing.T, f *registerFixture)) {
	t.Helper()
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		c := recipetest.ClientOf(t, srv)
		body(t, &registerFixture{srv, c, register{client: c, path: registerPath}})
	})
}

func (f *registerFixture) read(t *testing.T) state {
	t.Helper()
	return must.Get(f.register.read(t.Context()))(t)
}

func (f *registerFixture) replace(t *testing.T, from state, data string) state {
	t.Helper()
	return must.Get(f.register.replace(t.Context(), from, []byte(data)))(t)
}

// expect fails the test unless the register has the data.
func (f *registerFixture) expect(t *testing.T, data string) {
	t.Helper()
	if at := f.read(t); string(at.data) != data {
		t.Errorf("data %q, want %q", at.data, data)
	}
}

func TestAStateIsReplacedOnce(t *testing.T) {
	registerVirtually(t, func(t *testing.T, f *registerFixture) {
		none := f.read(t)
		if none.exists {
			t.Error("a znode exists at the start")
		}
		first := f.replace(t, none, "a")
		second := f.replace(t, first, "b")
		for name, from := range map[string]state{"no znode": none, "an earlier one": first} {
			if _, err := f.register.replace(t.Context(), from, []byte("c")); err != errStale { //nolint:errorlint // it is never wrapped
				t.Errorf("Replace of %s: %v, want ErrStale", name, err)
			}
		}
		f.expect(t, "b")
		must.OK(t, f.client.Delete(t.Context(), registerPath))
		if at, err := f.readLatest(t.Context()); err != nil || at.exists {
			t.Errorf("ReadLatest of no znode: %+v, %v", at, err)
		}
		if _, err := f.register.replace(t.Context(), second, []byte("c")); err != errStale { //nolint:errorlint // it is never wrapped
			t.Errorf("Replace of a znode that is gone: %v, want ErrStale", err)
		}
	})
}

// A function that panics or fails leaves the register as it was, and free for the next call.
func TestAFunctionThatPanicsWritesNothing(t *testing.T) {
	registerVirtually(t, func(t *testing.T, f *registerFixture) {
		f.replace(t, state{}, "a")
		func() {
			defer func() {
				if v := recover(); v != "in fn" {
					t.Errorf("recovered %v, want what the function panicked with", v)
				}
			}()
			_ = f.update(t.Context(), func(state) ([]byte, error) { panic("in fn") })
		}()
		refused := errors.New("refused")
		recipetest.Fails(t, "Update", f.update(t.Context(), func(state) ([]byte, error) { return []byte("x"), refused }), refused)
		f.expect(t, "a")
		must.OK(t, f.update(t.Context(), func(state) ([]byte, error) { return []byte("b"), nil }))
		f.expect(t, "b")
	})
}

// At version −2 the change is two writes in one transaction: another client's write comes between none.
func TestAStaleChangeAtMinusTwoWritesNothing(t *testing.T) {
	registerVirtually(t, func(t *testing.T, f *registerFixture) {
		f.replace(t, state{}, "a")
		must.OK(t, f.server.SetVersion(registerPath, -2))
		at := f.read(t)
		f.replace(t, at, "b")
		if _, err := f.register.replace(t.Context(), at, []byte("c")); err != errStale { //nolint:errorlint // it is never wrapped
			t.Errorf("Replace: %v, want ErrStale", err)
		}
		f.expect(t, "b")
	})
}

func TestAllEndsWithItsClientItsContextAndItsLoop(t *testing.T) {
	registerVirtually(t, func(t *testing.T, f *registerFixture) {
		seen := make(chan string, 10)
		follow := func(ctx context.Context) <-chan struct{} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				for at, err := range f.register.all(ctx) {
					seen <- fmt.Sprintf("%s %v %v", at.data, at.exists, err)
				}
			}()
			synctest.Wait()
			return done
		}
		ctx, cancel := context.WithCancel(t.Context())
		first := follow(ctx)
		f.replace(t, state{}, "a")
		synctest.Wait()
		cancel()
		<-first
		second := follow(t.Context())
		for at := range f.all(t.Context()) {
			if string(at.data) != "a" {
				t.Errorf("data %q, want a", at.data)
			}
			break
		}
		must.OK(t, f.client.Close())
		<-second
		close(seen)
		var all []string
		for s := range seen {
			all = append(all, s)
		}
		if want := []string{" false <nil>", "a true <nil>", "a true <nil>"}; !slices.Equal(all, want) {
			t.Errorf("seen %q, want %q", all, want)
		}
	})
}
