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
	"fmt"
	"io"
	"time"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
)

func main() { harness.Main(run) }

// run has three parcels shipped.
func run(ctx context.Context, zk harness.ZooKeeper, out io.Writer) (err error) {
	client, err := framework.NewClient(zk.Connect, zk.Dialer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	s, err := newShipper(client, "/shipping", 3, func(ctx context.Context, parcel int) error {
		fmt.Fprintln(out, "shipping parcel", parcel)
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
