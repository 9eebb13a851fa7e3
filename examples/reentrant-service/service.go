package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

const (
	stockPath = "/examples/shop/stock"
	lockPath  = "/examples/shop/lock"
)

var errSoldOut = errors.New("sold out")

// A repository is where the stock is kept.
type repository struct {
	client *framework.Client
	mutex  *lock.Mutex
}

func (r *repository) stock(ctx context.Context) (n int, version int32, err error) {
	data, st, err := r.client.Get(ctx, stockPath)
	if err != nil {
		return 0, 0, err
	}
	n, err = strconv.Atoi(string(data))
	return n, st.Version, err
}

// take takes a piece out of the stock.
func (r *repository) take(ctx context.Context) error {
	return lock.Do(ctx, r.mutex, func(ctx context.Context, _ *lock.Lease) error {
		n, version, err := r.stock(ctx)
		if err != nil {
			return err
		}
		// The version is no substitute for the lock, which excludes other clients. It refuses a
		// process that was stopped here, and lost the lock meanwhile.
		_, err = r.client.Set(ctx, stockPath, []byte(strconv.Itoa(n-1)), version)
		return err
	})
}

// A shop has the rules.
type shop struct {
	repository *repository
	mutex      *lock.Mutex
}

// sell sells a piece if there is one, and returns how many are left.
func (s *shop) sell(ctx context.Context) (left int, err error) {
	err = lock.Do(ctx, s.mutex, func(ctx context.Context, _ *lock.Lease) error {
		n, _, err := s.repository.stock(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			return errSoldOut
		}
		left = n - 1
		return s.repository.take(ctx) // no order has taken one since the check
	})
	return left, err
}

// A handler has the protocol.
type handler struct {
	shop  *shop
	mutex *lock.Mutex
}

// newHandler returns the service on a client. The three layers share nothing but the path
// of the lock: all Mutexes of a client with one path are the same lock.
func newHandler(c *framework.Client) (http.Handler, error) {
	var mutexes [3]*lock.Mutex
	for i := range mutexes {
		var err error
		if mutexes[i], err = lock.NewMutex(c, lockPath); err != nil {
			return nil, err
		}
	}
	h := &handler{&shop{&repository{c, mutexes[2]}, mutexes[1]}, mutexes[0]}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", h.order)
	return asOneParty(mux), nil
}

// asOneParty makes each request an owner of its own, whatever goroutines work for it. Without,
// the goroutine of the handler would be the owner, and one that it starts another.
func asOneParty(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		owner := lock.NewOwner(r.Method + " " + r.URL.Path)
		next.ServeHTTP(w, r.WithContext(lock.ContextWithOwner(r.Context(), owner)))
	})
}

// order sells a piece. Its answer is from one moment: the stock that it tells is what
// was left when the piece was sold.
func (h *handler) order(w http.ResponseWriter, r *http.Request) {
	err := lock.Do(r.Context(), h.mutex, func(ctx context.Context, _ *lock.Lease) error {
		left, err := h.shop.sell(ctx)
		if err != nil {
			return err
		}
		if n, _, err := h.shop.repository.stock(ctx); err != nil || n != left {
			return errors.Join(err, fmt.Errorf("stock of %d, %d left: somebody came in between", n, left))
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "sold; %d left\n", left)
		return nil
	})
	switch {
	case err == nil:
	case errors.Is(err, errSoldOut):
		http.Error(w, err.Error(), http.StatusConflict)
	default: // what is wrong is for the log, not for whoever asks
		http.Error(w, "try again later", http.StatusServiceUnavailable)
	}
}
