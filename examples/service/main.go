// Service is an HTTP service of which any number of instances may run: one at a time writes a report.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/health"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/lock/httplock"
)

func main() {
	listen := flag.String("listen", "localhost:8080", "address to serve at")
	connect := flag.String("connect", "localhost:2181", "connect string of ZooKeeper")
	drain := flag.Duration("drain", time.Second, "how long requests may still come after a signal: see kubernetes.yaml")
	flag.Parse()
	client, err := framework.NewClient(*connect, framework.WithSessionTimeout(15*time.Second), framework.WithSlog(slog.Default()))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	server := &http.Server{Addr: *listen, Handler: newHandler(ctx, client), ReadHeaderTimeout: 5 * time.Second}
	go func() { log.Print(server.ListenAndServe()); stop() }()
	<-ctx.Done()
	stop()               // a second Ctrl-C ends the process at once
	<-time.After(*drain) // until the load balancer has seen /readyz fail
	bounded, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	log.Print(server.Shutdown(bounded), client.Close()) // Close frees the locks at once
}

// newHandler returns the service, whose /readyz fails once ctx has ended.
func newHandler(ctx context.Context, client *framework.Client) http.Handler {
	mux := http.NewServeMux()
	report, err := httplock.New(func(*http.Request) (lock.Locker, error) {
		return lock.NewMutex(client, "/locks/report", recipes.WithName("report"))
	}, writeReport, httplock.WithWait(2*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	mux.Handle("POST /report", report)
	ready := health.Ready(client, 2*time.Second)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
			return
		}
		ready.ServeHTTP(w, r)
	})
	mux.Handle("GET /livez", health.Live(client))
	return mux
}

// writeReport works for 5 s, and stops when the lock is lost or the user disconnects.
func writeReport(w http.ResponseWriter, r *http.Request, l *lock.Lease) error {
	select {
	case <-time.After(5 * time.Second):
	case <-r.Context().Done():
		return context.Cause(r.Context())
	}
	_, err := fmt.Fprintf(w, "written under fence %d\n", l.Fence())
	return err
}
