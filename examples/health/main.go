// Health is a service that Kubernetes asks for its readiness and its liveness. It is ready while a
// quorum of the ensemble commits transactions for it, and alive unless its client was closed. So an
// outage of ZooKeeper takes the service out of the load balancer and does not restart it.
// kubernetes.yaml has the probes.
//
//	go run ./examples/health                                         a server within the program goes away and comes back
//	go run ./examples/health -listen :8080 -connect localhost:2181   serves until Ctrl-C or SIGTERM
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
)

func main() {
	listen := flag.String("listen", "", "address to serve at, as in :8080; without it the program asks itself, and ends")
	harness.Main(func(ctx context.Context, zk harness.ZooKeeper, out io.Writer) error {
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
		defer stop()
		return run(ctx, zk, out, *listen)
	})
}

func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer, listen string) (err error) {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	addr := listen
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler(client), ReadHeaderTimeout: time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // ends with stop
	defer func() { err = errors.Join(err, stop(server, served)) }()
	fmt.Fprintln(out, "listening at", listener.Addr())
	if listen != "" {
		<-ctx.Done()
		return nil
	}
	return outage(ctx, zk, client, out, "http://"+listener.Addr().String())
}

// stop shuts the server down and returns what went wrong with it.
func stop(server *http.Server, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := server.Shutdown(ctx)
	if serving := <-served; !errors.Is(serving, http.ErrServerClosed) {
		err = errors.Join(err, serving)
	}
	return err
}
