package httplock_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/lock/httplock"
)

// A host is an HTTP server and a client of it, which are connected by pipes in virtual time.
type host struct {
	*service
	client   *http.Client
	shutDown context.CancelFunc // ends the base context of all requests
	cut      func()             // breaks the client's connections

	called   atomic.Int32 // calls of the function
	finished atomic.Int32 // calls that returned nil
	returned atomic.Pointer[time.Time]
}

// pipes is a listener whose connections are pipes.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	mine, theirs := net.Pipe()
	p.conns <- theirs
	return mine, nil
}

// serving runs an HTTP server whose handler wrap returns, for the lock's handler, until the test ends.
func (s *service) serving(
	t *testing.T, protocols *http.Protocols, wrap func(http.Handler) http.Handler, serve httplock.Func, opts ...httplock.Option,
) *host {
	t.Helper()
	h := &host{service: s}
	handler := s.handler(t, func(w http.ResponseWriter, r *http.Request, l *lock.Lease) error {
		h.called.Add(1)
		err := serve(w, r, l)
		now := time.Now()
		h.returned.Store(&now)
		if err == nil {
			h.finished.Add(1)
		}
		return err
	}, opts...)
	if wrap != nil {
		handler = wrap(handler)
	}
	base, shutDown := context.WithCancel(context.WithoutCancel(t.Context()))
	listener := &pipes{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: handler, Protocols: protocols, BaseContext: func(net.Listener) context.Context { return base }}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	transport := &http.Transport{DialContext: listener.dial, Protocols: protocols}
	h.client, h.shutDown, h.cut = &http.Client{Transport: transport}, shutDown, transport.CloseIdleConnections
	t.Cleanup(func() {
		shutDown()
		transport.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
	return h
}

// A reply is what the HTTP client sees.
type reply struct {
	status int // 0 if the connection was aborted before the header
	body   string
	whole  bool // the body has come to its end
}

// ask makes a request.
func (h *host) ask(ctx context.Context, t *testing.T, method string) reply {
	t.Helper()
	rq := must.Get(http.NewRequestWithContext(ctx, method, "http://service/report", nil))(t)
	answer, err := h.client.Do(rq)
	if err != nil {
		return reply{}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return reply{answer.StatusCode, string(body), err == nil}
}

// protocols are the versions of HTTP.
var protocols = map[string]func() *http.Protocols{
	"HTTP1": func() *http.Protocols { return nil },
	"HTTP2": func() *http.Protocols {
		p := new(http.Protocols)
		p.SetUnencryptedHTTP2(true)
		return p
	},
}

const workTime = 2 * time.Second // of a function

var errWork = errors.New("the work failed")

// The functions of a service. Each works for workTime, or until its context ends.

func work(r *http.Request) error {
	select {
	case <-time.After(workTime):
		return nil
	case <-r.Context().Done():
		return context.Cause(r.Context())
	}
}

// plain writes its answer when the work is done.
func plain(w http.ResponseWriter, r *http.Request, _ *lock.Lease) error {
	if err := work(r); err != nil {
		return err
	}
	_, err := io.WriteString(w, "done")
	return err
}

// streaming writes half of its answer before the work, and the other half after it.
func streaming(w http.ResponseWriter, r *http.Request, _ *lock.Lease) error {
	_, _ = io.WriteString(w, "half")
	if err := work(r); err != nil {
		return err
	}
	_, err := io.WriteString(w, "half")
	return err
}

// stubborn ignores its context.
func stubborn(w http.ResponseWriter, _ *http.Request, _ *lock.Lease) error {
	<-time.After(workTime)
	_, err := io.WriteString(w, "done")
	return err
}

// fails returns an error after fn has been called.
func fails(fn func(w http.ResponseWriter)) httplock.Func {
	return func(w http.ResponseWriter, _ *http.Request, _ *lock.Lease) error {
		fn(w)
		return errWork
	}
}

// timeout is a middleware that ends the request's context after d.
func timeout(d time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), d)
			defer cancel()
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

func timeoutHandler(next http.Handler) http.Handler {
	return http.TimeoutHandler(next, time.Second, "too late")
}

// What the client sees.
var (
	done200 = reply{200, "done", true}
	held409 = reply{409, "Conflict\n", true}
	away503 = reply{503, "Service Unavailable\n", true}
	fail500 = reply{500, "Internal Server Error\n", true}
	aborted = reply{}
)

// surroundings are what may happen to a request on its way through a server, and what the client
// must see then. at returns what happens: during the wait or the work, a second after the request.
var surroundings = map[string]struct {
	serve  httplock.Func
	opts   []httplock.Option
	wrap   func(http.Handler) http.Handler
	held   bool // by another client
	second func(h *host)
	want   reply
	only   string // version of HTTP; "" for both
}{
	"nothing":                          {serve: plain, want: done200},
	"nothing, streaming":               {serve: streaming, want: reply{200, "halfhalf", true}},
	"an empty answer":                  {serve: func(_ http.ResponseWriter, r *http.Request, _ *lock.Lease) error { return work(r) }, want: reply{200, "", true}},
	"the lock is held":                 {serve: plain, held: true, opts: []httplock.Option{httplock.WithWait(time.Second)}, want: held409},
	"the lock is held, without a wait": {serve: plain, held: true, opts: []httplock.Option{httplock.WithoutWaiting()}, want: held409},

	"a timeout that has passed":             {serve: plain, wrap: timeout(0), want: away503},
	"a timeout that has passed, for a try":  {serve: plain, wrap: timeout(0), opts: []httplock.Option{httplock.WithoutWaiting()}, want: away503},
	"a timeout during the wait":             {serve: plain, held: true, wrap: timeout(time.Second), want: away503},
	"a timeout during the work":             {serve: plain, wrap: timeout(time.Second), want: fail500},
	"a timeout during the work, streaming":  {serve: streaming, wrap: timeout(time.Second), want: aborted},
	"a timeout during the work, ignored":    {serve: stubborn, wrap: timeout(time.Second), want: done200},
	"TimeoutHandler, in time":               {serve: fast, wrap: timeoutHandler, want: done200},
	"TimeoutHandler during the wait":        {serve: plain, held: true, wrap: timeoutHandler, want: reply{503, "too late", true}},
	"TimeoutHandler during the work":        {serve: plain, wrap: timeoutHandler, want: reply{503, "too late", true}},
	"TimeoutHandler, streaming":             {serve: streaming, wrap: timeoutHandler, want: reply{503, "too late", true}},
	"TimeoutHandler, which does not flush":  {serve: fails(flush), wrap: timeoutHandler, want: fail500},
	"TimeoutHandler, which does not hijack": {serve: fails(hijack), wrap: timeoutHandler, want: fail500},

	"the server shuts down during the wait":            {serve: plain, held: true, second: (*host).end, want: away503},
	"the server shuts down during the work":            {serve: plain, second: (*host).end, want: fail500},
	"the server shuts down during the work, streaming": {serve: streaming, second: (*host).end, want: aborted},
	"the server shuts down during the work, ignored":   {serve: stubborn, second: (*host).end, want: done200},

	"an outage during the wait":              {serve: plain, held: true, second: (*host).outage, want: away503},
	"an outage during the work":              {serve: plain, second: (*host).outage, want: done200},
	"an outage during the work, streaming":   {serve: streaming, second: (*host).outage, want: reply{200, "halfhalf", true}},
	"silent servers during the work":         {serve: plain, second: func(h *host) { h.server.Freeze() }, want: done200},
	"the session expires during the work":    {serve: plain, second: (*host).expire, want: fail500},
	"the session expires, streaming":         {serve: streaming, second: (*host).expire, want: aborted},
	"the session expires, which is ignored":  {serve: stubborn, second: (*host).expire, want: aborted},
	"the session expires, and no body":       {serve: silent, second: (*host).expire, want: fail500},
	"the session expires, as the cause says": {serve: untilLost, second: (*host).expire, want: fail500},
	"the session expires after a header":     {serve: begun(func(w http.ResponseWriter) { w.WriteHeader(200) }), second: (*host).expire, want: aborted},
	"the session expires after a body":       {serve: begun(func(w http.ResponseWriter) { _, _ = io.WriteString(w, "half") }), second: (*host).expire, want: aborted},
	"the session expires after a flush":      {serve: begun(flush), second: (*host).expire, want: reply{200, "", false}},
	"the client is closed during the wait":   {serve: plain, held: true, second: func(h *host) { _ = h.mine.Close() }, want: away503},
	"the client is closed during the work":   {serve: plain, second: func(h *host) { _ = h.mine.Close() }, want: fail500},
	"an error":                               {serve: fails(func(http.ResponseWriter) {}), want: fail500},
	"an error after the header":              {serve: fails(func(w http.ResponseWriter) { w.WriteHeader(200) }), want: aborted},
	"an error after a body":                  {serve: fails(func(w http.ResponseWriter) { _, _ = io.WriteString(w, "half") }), want: aborted},
	"an error after a copied body":           {serve: fails(func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader("half")) }), want: aborted},
	"an error after a copied body of 1 MB":   {serve: fails(func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader(strings.Repeat("half", 1<<18))) }), want: reply{200, strings.Repeat("half", 1<<18), false}},
	"an error after an informational answer": {serve: fails(func(w http.ResponseWriter) { w.WriteHeader(http.StatusEarlyHints) }), want: fail500},
	"an error after a flush":                 {serve: fails(flush), want: reply{200, "", false}},
	"a flush, and no error": {serve: func(w http.ResponseWriter, _ *http.Request, _ *lock.Lease) error {
		flush(w)
		return fast(w, nil, nil)
	}, want: done200},
	"an error after a refused hijack": {serve: fails(hijack), want: fail500, only: "HTTP2"},
	"a refused hijack, and no error": {serve: func(w http.ResponseWriter, _ *http.Request, _ *lock.Lease) error {
		hijack(w)
		return fast(w, nil, nil)
	}, want: done200, only: "HTTP2"},
	"an error after a hijack": {serve: func(w http.ResponseWriter, _ *http.Request, _ *lock.Lease) error {
		return errors.Join(errWork, speak(w))
	}, want: done200, only: "HTTP1"},
	"the session expires after a hijack": {serve: func(w http.ResponseWriter, r *http.Request, _ *lock.Lease) error {
		_ = work(r)
		return speak(w)
	}, second: (*host).expire, want: done200, only: "HTTP1"},
	"a panic": {serve: func(http.ResponseWriter, *http.Request, *lock.Lease) error { panic(http.ErrAbortHandler) }, want: aborted},
	"a panic in a body": {serve: func(w http.ResponseWriter, _ *http.Request, _ *lock.Lease) error {
		_, _ = io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	}, want: aborted},
}

func fast(w http.ResponseWriter, _ *http.Request, _ *lock.Lease) error {
	_, err := io.WriteString(w, "done")
	return err
}

// silent ignores its context and writes nothing.
func silent(http.ResponseWriter, *http.Request, *lock.Lease) error {
	<-time.After(workTime)
	return nil
}

// untilLost works until its lock is lost, and answers if its context says nothing of that.
func untilLost(w http.ResponseWriter, r *http.Request, _ *lock.Lease) error {
	<-r.Context().Done()
	if !errors.Is(context.Cause(r.Context()), lock.ErrLost) {
		w.WriteHeader(http.StatusOK)
	}
	return nil
}

// begun is silent after fn.
func begun(fn func(w http.ResponseWriter)) httplock.Func {
	return func(w http.ResponseWriter, r *http.Request, l *lock.Lease) error {
		fn(w)
		return silent(w, r, l)
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

func hijack(w http.ResponseWriter) { _, _, _ = http.NewResponseController(w).Hijack() }

// speak hijacks the connection and answers on it.
func speak(w http.ResponseWriter) error {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone")
	return errors.Join(err, conn.Close())
}

func (h *host) end()    { h.shutDown() }
func (h *host) outage() { h.away() }
func (h *host) expire() { _ = h.server.Expire(h.mine.Session().ID) }

// TestSurroundings: an answer says what happened to the work, and nothing that happened after it.
func TestSurroundings(t *testing.T) {
	for name, c := range surroundings {
		for version, of := range protocols {
			if c.only != "" && c.only != version {
				continue
			}
			subtest(t, name+"/"+version, func(t *testing.T, s *service) {
				h := s.serving(t, of(), c.wrap, c.serve, c.opts...)
				if c.held {
					s.hold(t)
				}
				if c.second != nil {
					time.AfterFunc(time.Second, func() { c.second(h) })
				}
				began := time.Now()
				got := h.ask(t.Context(), t, http.MethodPost)
				if got != c.want {
					t.Errorf("the client sees %.40v, want %.40v", got, c.want)
				}
				if limit := 6 * time.Second; time.Since(began) > limit {
					t.Errorf("answered after %v, want %v at the most", time.Since(began), limit)
				}
				if at := h.returned.Load(); at != nil && time.Since(*at) > time.Second { // the work is done
					t.Errorf("answered %v after the function returned", time.Since(*at))
				}
				if got.status == http.StatusOK && got.whole && h.finished.Load() == 0 && c.only != "HTTP1" {
					t.Errorf("answered 200: the function was called %d times and never finished", h.called.Load())
				}
				s.server.Thaw()
				s.server.Accept()
				if !c.held {
					s.hold(t) // blocks forever if the lock is still held
				}
			})
		}
	}
}

// TestSurroundings_outage_before has servers that are gone or silent when the request comes.
func TestSurroundings_outage_before(t *testing.T) {
	limits := map[string]struct {
		opts  []httplock.Option
		limit time.Duration
	}{
		"default":         {nil, 5 * time.Second},
		"without waiting": {[]httplock.Option{httplock.WithoutWaiting()}, 5 * time.Second},
		"one second":      {[]httplock.Option{httplock.WithWait(time.Second)}, time.Second},
	}
	for name, c := range limits {
		for how, begin := range map[string]func(*service){"gone": (*service).away, "silent": func(s *service) { s.server.Freeze() }} {
			subtest(t, name+"/"+how, func(t *testing.T, s *service) {
				h := s.serving(t, nil, nil, plain, c.opts...)
				begin(s)
				began := time.Now()
				if got := h.ask(t.Context(), t, http.MethodPost); got != away503 {
					t.Errorf("the client sees %v, want %v", got, away503)
				}
				if took := time.Since(began); took > c.limit {
					t.Errorf("answered after %v, want %v", took, c.limit)
				}
				if n := h.called.Load(); n != 0 {
					t.Errorf("the function was called %d times", n)
				}
				s.server.Thaw()
				s.server.Accept()
			})
		}
	}
}

// TestSurroundings_HEAD answers with a status and no body.
func TestSurroundings_HEAD(t *testing.T) {
	for version, of := range protocols {
		subtest(t, version, func(t *testing.T, s *service) {
			h := s.serving(t, of(), nil, plain, httplock.WithoutWaiting())
			if got := h.ask(t.Context(), t, http.MethodHead); got.status != http.StatusOK || got.body != "" {
				t.Errorf("the client sees %v, want 200", got)
			}
			s.hold(t)
			if got := h.ask(t.Context(), t, http.MethodHead); got.status != http.StatusConflict {
				t.Errorf("the client sees %v, want 409", got)
			}
		})
	}
}

// TestSurroundings_client_gone ends the client's request during the wait and during the work. The
// function is not called, or its context ends, and the lock is free afterwards.
func TestSurroundings_client_gone(t *testing.T) {
	for version, of := range protocols {
		for _, held := range []bool{true, false} {
			subtest(t, version, func(t *testing.T, s *service) {
				h := s.serving(t, of(), nil, plain, httplock.WithWait(time.Minute))
				var lease *lock.Lease
				if held {
					lease = must.Get(mutex(t, s.other).Lock(t.Context()))(t)
				}
				if got := h.ask(recipetest.Within(t, time.Second), t, http.MethodPost); got != aborted {
					t.Errorf("the client sees %v", got)
				}
				synctest.Wait()
				if held {
					must.OK(t, lease.Release(t.Context()))
				}
				if n := h.finished.Load(); n != 0 || held && h.called.Load() != 0 {
					t.Errorf("the function was called %d times and finished %d times", h.called.Load(), n)
				}
				must.OK(t, must.Get(mutex(t, s.other).TryLock(t.Context()))(t).Release(t.Context()))
			})
		}
	}
}

// TestSurroundings_sequence sends one request after another: an answered request leaves nothing that
// the next one would meet.
func TestSurroundings_sequence(t *testing.T) {
	for version, of := range protocols {
		subtest(t, version, func(t *testing.T, s *service) {
			h := s.serving(t, of(), nil, fast, httplock.WithoutWaiting())
			for i := range 20 {
				if got := h.ask(t.Context(), t, http.MethodPost); got != done200 {
					t.Errorf("request %d: the client sees %v, want 200", i, got)
				}
			}
		})
	}
}
