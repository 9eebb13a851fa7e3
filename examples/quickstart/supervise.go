package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

type options struct {
	connect         string
	real            bool
	workers, rounds int
}

// supervise starts a server, shows what a client sees that can't acquire the lock, and lets the
// worker processes contend for it.
func (o options) supervise(ctx context.Context) (err error) {
	if o.connect == "" {
		connect, stop, err := o.startServer(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
		o.connect = connect
	}
	if err := refusals(ctx, o.connect); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	errs := make([]error, o.workers)
	var running sync.WaitGroup
	for i := range o.workers {
		cmd := exec.CommandContext(ctx, program, "-connect", o.connect,
			"-worker", strconv.Itoa(i+1), "-rounds", strconv.Itoa(o.rounds))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		running.Go(func() { errs[i] = cmd.Run() })
	}
	running.Wait()
	return errors.Join(errs...)
}

func (o options) startServer(ctx context.Context) (connect string, stop func() error, err error) {
	if o.real {
		server, err := zktest.Start(ctx)
		if err != nil {
			return "", nil, err
		}
		fmt.Println("an Apache ZooKeeper runs at", server.Addr())
		return server.Addr(), server.Close, nil
	}
	server, err := zkserver.Start()
	if err != nil {
		return "", nil, err
	}
	addr, err := server.Listen("127.0.0.1:0")
	if err != nil {
		return "", nil, errors.Join(err, server.Close())
	}
	fmt.Println("a ZooKeeper for trying out runs within this program; -real starts an Apache ZooKeeper")
	return addr, server.Close, nil
}

// refusals has a second client try to get what a first one holds.
func refusals(ctx context.Context, connect string) (err error) {
	mutex, closeFirst, err := newMutex(connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFirst()) }()
	return lock.Do(ctx, mutex, func(ctx context.Context, _ *lock.Lease) (err error) {
		other, closeOther, err := newMutex(connect)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeOther()) }()

		if _, err = other.TryLock(ctx); !errors.Is(err, lock.ErrHeld) {
			return fmt.Errorf("no refusal of a held lock: %w", err)
		}
		fmt.Println("TryLock is refused:", err)

		brief, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		if _, err = other.Lock(brief); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("no timeout at a held lock: %w", err)
		}
		fmt.Println("Lock times out:    ", err)
		return nil
	})
}

func newMutex(connect string) (*lock.Mutex, func() error, error) {
	client, err := framework.NewClient(connect)
	if err != nil {
		return nil, nil, err
	}
	mutex, err := lock.NewMutex(client, "/quickstart/lock")
	if err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return mutex, client.Close, nil
}
