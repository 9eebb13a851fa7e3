package httplock

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/docent-go/docent/recipes/lock"
)

// A Func serves a request that holds a lock. r's context ends when the lock is lost, with a
// [*lock.LostError] as its cause; Func must then stop. If Func returns an error, it should have
// written nothing.
type Func func(w http.ResponseWriter, r *http.Request, l *lock.Lease) error

// New returns a handler that acquires the request's lock, calls serve, and releases the lock before
// the answer ends. locker returns the lock of a request; it may be called concurrently. Use [Same]
// if all requests have one lock.
//
// If serve can't or should not be called, or returns an error, and serve has written nothing, the
// handler answers as [WithRefusal] says: by default 409, 503 or 500. It does so, too, if the lock was
// lost while serve ran. If serve had begun its answer, the handler aborts the connection
// ([http.ErrAbortHandler]), so that a client can't take the answer for a success. An error of
// locker is answered the same way. If the client is gone, there is no answer.
//
// New panics if locker or serve is nil. Its error names every faulty option.
func New(locker func(*http.Request) (lock.Locker, error), serve Func, opts ...Option) (http.Handler, error) {
	if locker == nil || serve == nil {
		panic("httplock: New with a nil function")
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("httplock: %w", err)
	}
	return &handler{locker: locker, serve: serve, cfg: cfg}, nil
}

// Same returns a function that returns l for every request.
func Same(l lock.Locker) func(*http.Request) (lock.Locker, error) {
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
	err := h.locked(answer, r)
	switch {
	case err == nil || r.Context().Err() != nil:
	case answer.begun:
		panic(http.ErrAbortHandler)
	default:
		h.cfg.refuse(w, r, err)
	}
}

// locked serves r under its lock. An error of the release is no error of the request: the lock is
// not held any more, and the client deletes the znode in the background.
func (h *handler) locked(w http.ResponseWriter, r *http.Request) error {
	l, err := h.locker(r)
	if err != nil {
		return err
	}
	called := false
	var served error
	err = lock.Do(owned(r), l, func(ctx context.Context, lease *lock.Lease) error {
		called = true
		served = h.serve(w, r.WithContext(ctx), lease)
		return nil
	}, h.waiting())
	if called && !errors.Is(err, lock.ErrLost) {
		return served
	}
	return errors.Join(served, err)
}

func (h *handler) waiting() lock.DoOption {
	if h.cfg.wait == 0 {
		return lock.WithoutWaiting()
	}
	return lock.WaitAtMost(h.cfg.wait)
}
