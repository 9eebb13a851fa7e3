package httplock_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/lock/httplock"
	"github.com/docent-go/docent/testing/zkserver"
)

// A service is a server with two clients, of which mine is the service's.
type service struct {
	server      *zkserver.Server
	mine, other *framework.Client
}

// inBubble runs fn with a service of its own, in virtual time.
func inBubble(t *testing.T, fn func(t *testing.T, s *service)) {
	t.Helper()
	recipetest.InVirtualTime(t, func(t *testing.T, srv *zkserver.Server) {
		client := func() *framework.Client {
			return recipetest.ClientOf(t, srv, framework.WithSessionTimeout(10*time.Second))
		}
		fn(t, &service{srv, client(), client()})
	})
}

// subtest is inBubble in a subtest.
func subtest(t *testing.T, name string, fn func(t *testing.T, s *service)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inBubble(t, fn) })
}

// away makes the server unreachable, until Accept.
func (s *service) away() {
	s.server.Refuse()
	s.server.Cut()
}

func mutex(t *testing.T, c *framework.Client, opts ...lock.Option) *lock.Mutex {
	t.Helper()
	return must.Get(lock.NewMutex(c, "/report", opts...))(t)
}

// handler returns a handler with the service's mutex.
func (s *service) handler(t *testing.T, serve httplock.Func, opts ...httplock.Option) http.Handler {
	t.Helper()
	return must.Get(httplock.New(httplock.Same(mutex(t, s.mine)), serve, opts...))(t)
}

// request calls h on this goroutine, as net/http does with the requests of one connection.
func request(ctx context.Context, h http.Handler) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodPost, "/report/secret", nil))
	return answer
}

func done(w http.ResponseWriter, _ *http.Request, _ *lock.Lease) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// hold makes another client hold the lock until the test ends.
func (s *service) hold(t *testing.T) {
	t.Helper()
	lease := must.Get(mutex(t, s.other).Lock(t.Context()))(t)
	t.Cleanup(func() { _ = lease.Release(context.Background()) })
}

func TestABusyLock(t *testing.T) {
	for name, c := range map[string]struct {
		opts []httplock.Option
		wait time.Duration
	}{
		"default":         {nil, 5 * time.Second},
		"a bound":         {[]httplock.Option{httplock.WithWait(time.Minute)}, time.Minute},
		"without waiting": {[]httplock.Option{httplock.WithoutWaiting()}, 0},
	} {
		subtest(t, name, func(t *testing.T, s *service) {
			s.hold(t)
			begun := time.Now()
			got := request(t.Context(), s.handler(t, done, c.opts...))
			if got.Code != http.StatusConflict || got.Header().Get("Retry-After") == "" {
				t.Errorf("status %d, header %v, want 409 with Retry-After", got.Code, got.Header())
			}
			if waited := time.Since(begun); waited < c.wait || waited > c.wait+time.Second {
				t.Errorf("answered after %v, want %v", waited, c.wait)
			}
			if strings.Contains(got.Body.String(), "/report") {
				t.Errorf("the answer shows the lock: %q", got.Body)
			}
		})
	}
}

func TestAnErrorOfTheFunction(t *testing.T) {
	boom := errors.New("boom")
	serve := func(http.ResponseWriter, *http.Request, *lock.Lease) error { return boom }
	subtest(t, "refusal", func(t *testing.T, s *service) {
		got := request(t.Context(), s.handler(t, serve, httplock.WithRefusal(
			func(w http.ResponseWriter, _ *http.Request, err error) {
				if !errors.Is(err, boom) {
					t.Errorf("error %v, want the function's own", err)
				}
				w.WriteHeader(http.StatusTeapot)
			})))
		if got.Code != http.StatusTeapot {
			t.Errorf("status %d, want 418", got.Code)
		}
	})
	subtest(t, "locker", func(t *testing.T, _ *service) {
		h := must.Get(httplock.New(func(*http.Request) (lock.Locker, error) { return nil, boom }, done))(t)
		if got := request(t.Context(), h); got.Code != http.StatusInternalServerError {
			t.Errorf("status %d, want 500", got.Code)
		}
	})
}

// TestARefusalHasNothingOfTheFunctionsHeader has the function prepare an answer, and fail: the refusal must
// not be taken for gzip, cached, or followed to another place. What was set before the handler stays.
func TestARefusalHasNothingOfTheFunctionsHeader(t *testing.T) {
	inBubble(t, func(t *testing.T, s *service) {
		prepared := []string{"Content-Encoding", "Cache-Control", "Location", "Etag", "Content-Range", "Set-Cookie", "Request-Id"}
		h := s.handler(t, func(w http.ResponseWriter, _ *http.Request, _ *lock.Lease) error {
			for _, name := range prepared {
				w.Header().Set(name, "the function's")
			}
			return errors.New("it failed")
		})
		answer := httptest.NewRecorder()
		answer.Header().Set("Request-Id", "7")
		h.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/report", nil))
		for _, name := range prepared {
			want := ""
			if name == "Request-Id" {
				want = "7"
			}
			if got := answer.Header().Get(name); got != want {
				t.Errorf("the refusal has %s %q, want %q", name, got, want)
			}
		}
		if answer.Code != http.StatusInternalServerError {
			t.Errorf("status %d, want 500", answer.Code)
		}
	})
}

// A handler can't know whether the client is gone: a timeout of the server's ends the context, too.
func TestARequestThatHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, s *service) {
		s.hold(t)
		ctx := recipetest.Within(t, time.Second)
		h := s.handler(t, done, httplock.WithRefusal(func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, httplock.ErrRequestEnded) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v, want ErrRequestEnded and the context's", err)
			}
			w.WriteHeader(httplock.Status(err))
		}))
		if got := request(ctx, h); got.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d, want 503", got.Code)
		}
	})
}

func TestNew_names_each_faulty_option(t *testing.T) {
	t.Parallel()
	_, err := httplock.New(nil, done, httplock.WithWait(-time.Second), nil, httplock.WithRefusal(nil))
	recipetest.Says(t, err, "wait -1s: must be positive", "option 1: must not be nil", "refusal: must not be nil")
}

func TestStatus(t *testing.T) {
	t.Parallel()
	away := &lock.WaitError{Err: errors.Join(context.DeadlineExceeded, framework.ErrNotConnected)}
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"nil":                  {nil, 200},
		"held":                 {lock.ErrHeld, 409},
		"a wait that ended":    {&lock.WaitError{Err: context.DeadlineExceeded}, 409},
		"a wait without reply": {&lock.WaitError{Ahead: -1, Err: context.DeadlineExceeded}, 503},
		"an outage":            {away, 503},
		"the session's end":    {framework.ErrSessionExpired, 503},
		"a closed client":      {framework.ErrClosed, 503},
		"the request's end":    {errors.Join(httplock.ErrRequestEnded, &lock.WaitError{Err: context.Canceled}), 503},
		"lost":                 {&lock.LostError{Cause: framework.ErrSessionExpired}, 500},
		"lost, then busy":      {errors.Join(lock.ErrHeld, &lock.LostError{Cause: framework.ErrClosed}), 500},
		"lost, then away":      {errors.Join(framework.ErrNotConnected, &lock.LostError{Cause: framework.ErrSessionExpired}), 500},
		"a refused operation":  {framework.ErrNoAuth, 500},
	} {
		if got := httplock.Status(c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
