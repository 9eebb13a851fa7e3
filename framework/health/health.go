// Package health has HTTP handlers for the probes of a service, as Kubernetes and load balancers
// send them.
//
//	mux.Handle("GET /readyz", health.Ready(client, 2*time.Second))
//	mux.Handle("GET /livez", health.Live(client))
//
// An outage of ZooKeeper costs a service its readiness, and not its life: the client continues by
// itself, and a restart would lose the session and its locks.
//
// Stability: stable.
package health

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/usercall"
)

// Ready returns a handler that answers 200 if a quorum of the ensemble commits a transaction of the
// client's session within limit, as [framework.Client.Ready] checks. Otherwise it answers 503 with
// the client's state and the type of the error ([zktel.ErrorType]). limit should be less than
// the probe's own timeout, so that a failed probe has its reason. Each request costs the ensemble
// one transaction.
//
// Ready panics if c is nil or limit is not positive.
func Ready(c *framework.Client, limit time.Duration) http.Handler {
	usercall.Require("c", c != nil)
	if limit <= 0 {
		panic(fmt.Sprintf("health.Ready: limit %v: must be positive", limit))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		answer(w, c, c.Ready(ctx))
	})
}

// Live returns a handler that answers 503 if the client is closed, and 200 in every other state. It
// sends no request. Live panics if c is nil.
func Live(c *framework.Client) http.Handler {
	usercall.Require("c", c != nil)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var err error
		if c.State() == framework.Closed {
			err = framework.ErrClosed
		}
		answer(w, c, err)
	})
}

// answer shows no text of an error: it names hosts and paths.
func answer(w http.ResponseWriter, c *framework.Client, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "zookeeper: %v: %s\n", c.State(), zktel.ErrorType(err))
		return
	}
	fmt.Fprintf(w, "zookeeper: %v\n", c.State())
}
