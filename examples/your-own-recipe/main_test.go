package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
)

func TestBaton(t *testing.T) {
	t.Parallel()
	want := `the first runner carries the baton
the first runner lost the baton, and the second one carries it
the second runner gave it back
`
	if got := harness.RunInBubble(t, run); got != want {
		t.Errorf("printed:\n%s\nwant:\n%s", got, want)
	}
}

func TestBaton_excludes(t *testing.T) {
	t.Parallel()
	harness.RunInBubble(t, func(ctx context.Context, zk harness.ZooKeeper, _ io.Writer) error {
		var mu sync.Mutex
		carriers, most := 0, 0
		errs := make(chan error, 8)
		for range cap(errs) {
			client, err := framework.NewClient(zk.Connect, zk.Dialer)
			if err != nil {
				return err
			}
			defer client.Close()
			go func() {
				carried, err := (&Baton{client, path}).Take(ctx)
				if err != nil {
					errs <- err
					return
				}
				mu.Lock()
				carriers++
				most = max(most, carriers)
				mu.Unlock()
				<-time.After(time.Second)
				mu.Lock()
				carriers--
				mu.Unlock()
				errs <- carried.Return(ctx)
			}()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				return err
			}
		}
		if most != 1 {
			t.Errorf("%d clients carried the baton at a time, want 1", most)
		}
		return nil
	})
}

func TestBaton_Take_leaves_no_orphan(t *testing.T) {
	t.Parallel()
	harness.RunInBubble(t, func(ctx context.Context, zk harness.ZooKeeper, _ io.Writer) error {
		client, err := framework.NewClient(zk.Connect, zk.Dialer)
		if err != nil {
			return err
		}
		defer client.Close()
		baton := &Baton{client, path}
		held, err := baton.Take(ctx)
		if err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := baton.Take(waiting); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second Take: %v, want the end of its context", err)
		}
		if err := held.Return(ctx); err != nil {
			return err
		}
		<-time.After(time.Minute)
		if _, exists, err := client.Exists(ctx, path); err != nil || exists {
			t.Errorf("the znode exists a minute later: %t, %v", exists, err)
		}
		return nil
	})
}
