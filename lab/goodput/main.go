// Goodput puts two loads on docent, go-zookeeper's Conn and Curator, by the same slow link to a real
// server, and prints what comes of them:
//
//   - bulk: a process that holds a lock reads a large znode many times at once;
//   - overload: a process that holds a lock is asked for three times as many reads a second as the
//     link carries. The context of each ends after 100 ms.
//
// Run it as
//
//	go run -C lab ./goodput
//
// Each contender has a server of its own. A lock is kept if its znode is the same after the load as before it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/lab/bench/contender"
	"github.com/docent-go/docent/testing/zktest"
)

const (
	sessionTimeout = 10 * time.Second
	patience       = 100 * time.Millisecond // of an overload's read
	lockPath       = "/lock"
	largePath      = "/large"
	smallPath      = "/small"
	largeSize      = 1000 << 10
	smallSize      = 1 << 10
)

// A load is what the contenders do, over a link of rate bytes a second.
type load struct {
	name    string
	rate    int
	reads   int           // of bulk, at once
	perTick int           // of overload, every 10 ms
	lasts   time.Duration // of overload
}

// A result is what a load came to.
type result struct {
	OK    int           // reads that succeeded in time
	Took  time.Duration // until the last of them had ended
	After time.Duration // from the end of an overload until a read succeeded
	Kept  bool          // the lock
}

// A player runs a load and calls locked when it has its lock, and done when the load has ended.
type player interface {
	run(ctx context.Context, addr string, l load, locked, done func() error) (result, error)
}

func main() {
	loads := []load{
		{name: "bulk", rate: 10 * 1000 * 1000, reads: 300},
		{name: "overload", rate: 1100 * 1000, perTick: 30, lasts: time.Minute},
	}
	flag.IntVar(&loads[0].reads, "bulk", loads[0].reads, "large reads at once")
	flag.DurationVar(&loads[1].lasts, "overload", loads[1].lasts, "how long the overload lasts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := play(ctx, loads)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "goodput:", err)
		os.Exit(1)
	}
}

func play(ctx context.Context, loads []load) error {
	dir, err := os.MkdirTemp("", "goodput")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	curator, err := compile(ctx, dir)
	if err != nil {
		return err
	}
	libraries := contender.Libraries()
	contenders := []struct {
		name string
		player
	}{{"docent", library{libraries["docent"]}}, {"go-zookeeper", library{libraries["go-zookeeper"]}}, {"Curator", curator}}
	fmt.Println("| load | | in time | took | usable again after | lock kept |\n|---|---|--:|--:|--:|---|")
	for _, l := range loads {
		for _, c := range contenders {
			r, err := measure(ctx, c, l)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", l.name, c.name, err)
			}
			fmt.Printf("| %s | %s | %d | %v | %v | %t |\n", l.name, c.name, r.OK, r.Took.Round(100*time.Millisecond), r.After.Round(10*time.Millisecond), r.Kept)
		}
	}
	return nil
}

// measure runs a load on a server of its own.
func measure(ctx context.Context, c player, l load) (_ result, err error) {
	server, err := zktest.Start(ctx)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	eye, err := framework.NewClient(server.Addr())
	if err != nil {
		return result{}, err
	}
	defer eye.Close()
	for path, size := range map[string]int{lockPath: 0, largePath: largeSize, smallPath: smallSize} {
		if _, err := eye.Create(ctx, path, make([]byte, size)); err != nil {
			return result{}, err
		}
	}
	relay, err := newRelay(server.Addr(), l.rate)
	if err != nil {
		return result{}, err
	}
	defer relay.close()
	var before, after []string
	note := func(names *[]string) func() error {
		return func() (err error) {
			*names, _, err = eye.Children(ctx, lockPath)
			slices.Sort(*names)
			return err
		}
	}
	r, err := c.run(ctx, relay.addr(), l, note(&before), note(&after))
	if err == nil && len(before) == 0 {
		err = errors.New("no lock before the load")
	}
	r.Kept = slices.Equal(before, after)
	return r, err
}
