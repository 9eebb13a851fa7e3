// Testing-your-code is a small service whose work needs a lock, and its test, in
// which the session expires in the middle of the work: shipper_test.go. The test
// takes minutes of virtual time, none on the clock, and no ZooKeeper but the one
// within the test.
//
//	go test -v ./examples/testing-your-code               the test
//	go run ./examples/testing-your-code                   the service, on a server within the program
//	go run ./examples/testing-your-code -connect host:2181
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

func main() {
	connect := flag.String("connect", "", "ZooKeeper to use, as in host1:2181,host2:2181/chroot")
	flag.Parse()
	if err := run(context.Background(), *connect); err != nil {
		fmt.Fprintln(os.Stderr, "testing-your-code:", err)
		os.Exit(1)
	}
}

// run has three parcels shipped.
func run(ctx context.Context, connect string) (err error) {
	var opts []framework.Option
	if connect == "" {
		server, startErr := zkserver.Start()
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		connect = server.Addr()
		opts = append(opts, framework.WithDialer(server.Dial))
	}
	client, err := framework.NewClient(connect, opts...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	s, err := newShipper(client, "/shipping", 3, func(ctx context.Context, parcel int) error {
		fmt.Println("shipping parcel", parcel)
		return pause(ctx, time.Second)
	})
	if err != nil {
		return err
	}
	return s.run(ctx)
}

// pause is work that takes a while, and stops when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
