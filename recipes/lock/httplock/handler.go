package httplock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/docent-go/docent/internal/usercall"
	"github.com/docent-go/docent/recipes/internal/args"
	"github.com/docent-go/docent/recipes/lock"
)

// A Func serves a request that holds a lock. r's context ends when the lock is lost, with a
// [*lock.LostError] as its cause; Func must then stop. If Func returns an error, it should have
// written nothing.
type Func func(w http.ResponseWriter, r *http.Request, l *lock.Lease) error

// ErrRequestEnded is the error of a request whose context ended before its function was called: the
// client is gone, a timeout of the server's has passed, or the server shuts down.
var ErrRequestEnded = errors.New("httplock: the request ended before it had the lock")

// New returns a handler that acquires the request's lock, calls serve, and releases the lock. locker
// returns the lock of a request; it may be called concurrently. Use [Same] if all requests have one
// lock.
//
// If serve can't or should not be called, or returns an error, and serve has written nothing, the
// handler answers as [WithRefusal] says: by default 409, 503 or 500. It does so, too, if the lock was
// lost before serve returned. The answer's header is as it was before serve: what serve set is not sent. If serve
// had begun its answer, the handler aborts the connection ([http.ErrAbortHandler]), so that a client can't take
// the answer for a success. An error of locker is answered the same way. A connection that serve has hijacked is
// serve's own: the handler neither answers nor closes it.
//
// All this also holds if the request's context has ended. The handler can't know whether the client
// is gone or waits, because a timeout or a shutdown of the server ends the context, too. If serve
// returns nil, its answer is sent, even if the lock is lost after that. A release that is not
// confirmed within 250 ms continues in the background, at the latest until the client is closed.
//
// If an argument is faulty, New returns all faults.
func New(locker func(*http.Request) (lock.Locker, error), serve Func, opts ...Option) (http.Handler, error) {
	cfg, err := newConfig(opts)
	err = errors.Join(args.Function("locker", locker != nil), args.Function("serve", serve != nil), err)
	if err != nil {
		return nil, fmt.Errorf("httplock: %w", err)
	}
	return &handler{locker: locker, serve: serve, cfg: cfg}, nil
}

// Same returns a function that returns l for every request. It panics if l is nil.
func Same(l lock.Locker) func(*http.Request) (lock.Locker, error) {
	usercall.Require("l", l != nil)
	return func(*http.Request) (lock.Locker, error) { return l, nil }
}

type handler struct {
	locker func(*http.Request) (lock.Locker, error)
	serve  Func
	cfg    config
}

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := &answer{ResponseWriter: w}
	before := w.Header().Clone()
	err := h.locked(answer, r)
	switch {
	case err == nil || answer.hijacked:
	case answer.begun:
		panic(http.ErrAbortHandler)
	default:
		clear(w.Header())
		maps.Copy(w.Header(), before)
		h.cfg.refuse(w, r, err)
	}
}

// locked serves r under its lock. A server's refusal of the release is no error of the request: the
// work is done, and the client repeats the deletion and logs the refusal.
func (h *handler) locked(w http.ResponseWriter, r *http.Request) error {
	called := false
	var served error
	l, err := h.locker(r)
	if err == nil {
		err = lock.Do(owned(r), l, func(ctx context.Context, lease *lock.Lease) error {
			called = true
			served = h.serve(w, r.WithContext(ctx), lease)
			return served
		}, h.waiting())
	}
	switch ended := r.Context().Err(); {
	case !called && ended != nil && errors.Is(err, ended):
		return fmt.Errorf("%w: %w", ErrRequestEnded, err)
	case called && !errors.Is(err, lock.ErrLost):
		return served
	}
	return err
}

func (h *handler) waiting() lock.DoOption {
	if h.cfg.wait == 0 {
		return lock.WithoutWaiting()
	}
	return lock.WaitAtMost(h.cfg.wait)
}
