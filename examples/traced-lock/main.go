// Traced-lock shows why a request was slow: another request, in another service, held the lock.
// Two services, each a process, contend for one lock. The program prints the traces of both as
// trees, with the link from the waiter to the holder that it waited for.
//
//	go run .                          on a server within the program
//	go run . -connect localhost:2181  on yours
//
// With OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 the services send their traces there,
// too, by OTLP over HTTP.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/docent-go/docent/testing/zkserver"
)

func main() {
	connect := flag.String("connect", "", "ZooKeeper to use, as in host1:2181,host2:2181/chroot")
	hold := flag.Duration("hold", 300*time.Millisecond, "how long the first service makes the second one wait")
	service := flag.String("service", "", "be the service of this name (for the program itself)")
	flag.Parse()
	run := func(ctx context.Context) error { return supervise(ctx, *connect, *hold) }
	if *service != "" {
		run = func(ctx context.Context) error { return serve(ctx, *service, *connect, os.Stdin, os.Stdout) }
	}
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "traced-lock:", err)
		os.Exit(1)
	}
}

// supervise lets one service have the lock while another comes to wait for it, and
// prints the traces of both.
func supervise(ctx context.Context, connect string, hold time.Duration) (err error) {
	if connect == "" {
		server, err := zkserver.Start()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		if connect, err = server.Listen("127.0.0.1:0"); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends what is left of the processes
	billing, err := start(ctx, "billing", connect)
	if err != nil {
		return err
	}
	if err := billing.await("holds"); err != nil {
		return err
	}
	checkout, err := start(ctx, "checkout", connect)
	if err != nil {
		return err
	}
	if err := checkout.await("waits"); err != nil {
		return err
	}
	<-time.After(hold)
	for _, s := range []*process{billing, checkout} {
		if err := s.finish(); err != nil {
			return err
		}
	}
	fmt.Println()
	fmt.Print(newForest(billing.spans, checkout.spans))
	return nil
}
