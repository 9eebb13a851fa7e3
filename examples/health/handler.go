package main

import (
	"context"
	"net/http"
	"time"

	"github.com/docent-go/docent/framework"
)

// readyLimit is less than the probe's timeoutSeconds, so that a failure has its reason.
const readyLimit = 2 * time.Second

// handler answers the probes of kubernetes.yaml.
func handler(client *framework.Client) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyLimit)
		defer cancel()
		if err := client.Ready(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	// Only a restart helps a closed client. In every other state the client goes on by itself, and a
	// restart would lose its locks.
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		if client.State() == framework.Closed {
			http.Error(w, "the client is closed", http.StatusServiceUnavailable)
		}
	})
	return mux
}
