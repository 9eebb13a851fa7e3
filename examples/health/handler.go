package main

import (
	"net/http"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/health"
)

// readyLimit is less than the probe's timeoutSeconds, so that a failure has its reason.
const readyLimit = 2 * time.Second

// handler answers the probes of kubernetes.yaml.
func handler(client *framework.Client) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /readyz", health.Ready(client, readyLimit))
	mux.Handle("GET /livez", health.Live(client))
	return mux
}
