// Package harness has what all examples have in common: a ZooKeeper to run on, and
// an end at Ctrl-C.
package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

// A ZooKeeper is what an example runs on:
//
//	client, err := framework.NewClient(zk.Connect, zk.Dialer)
type ZooKeeper struct {
	Connect  string           // the connect string
	Dialer   framework.Option // a service needs none: it is the way into the embedded server
	Embedded *zkserver.Server // nil where -connect names another
}

// Main parses the flags, runs the example on the server of -connect or on one within
// the program, and ends the process if it failed. Run's context ends at Ctrl-C.
func Main(run func(ctx context.Context, zk ZooKeeper, out io.Writer) error) {
	connect := flag.String("connect", "", "ZooKeeper to use, as in host1:2181,host2:2181/chroot")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runOn(ctx, *connect, run); err != nil {
		stop()
		name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func runOn(ctx context.Context, connect string, run func(context.Context, ZooKeeper, io.Writer) error) (err error) {
	if connect != "" {
		dial := framework.WithDialer(new(net.Dialer).DialContext)
		return run(ctx, ZooKeeper{Connect: connect, Dialer: dial}, os.Stdout)
	}
	zk, err := Embedded()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, zk.Embedded.Close()) }()
	return run(ctx, zk, os.Stdout)
}

// Embedded starts a ZooKeeper within the program, whose sessions may be as short as
// a demonstration wants them. Embedded.Close ends it.
func Embedded() (ZooKeeper, error) {
	server, err := zkserver.Start(zkserver.WithSessionTimeouts(100*time.Millisecond, time.Minute))
	if err != nil {
		return ZooKeeper{}, err
	}
	return ZooKeeper{
		Connect:  server.Addr(),
		Dialer:   framework.WithDialer(server.Dial),
		Embedded: server,
	}, nil
}
