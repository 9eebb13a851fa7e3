package fragments_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

func TestConcepts_states(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		client := s.client
		var logs bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&logs, nil))
		func() {
			remove := client.OnState(func(change framework.StateChange) {
				logger.Info("zookeeper", "change", change)
			})
			defer remove()
			synctest.Wait()
			s.server.Cut()
			synctest.Wait()
		}()
		if strings.Count(logs.String(), "change=") < 2 {
			t.Errorf("states logged: %s", logs.String())
		}
	})
}

func TestConcepts_owners(t *testing.T) {
	t.Parallel()
	t.Run("a goroutine waits for its parent", func(t *testing.T) {
		t.Parallel()
		inBubble(t, func(t *testing.T, s scene) {
			mutex, err := lock.NewMutex(s.client, "/locks/report")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			var j job
			if err := wrong(ctx, mutex, j.publish); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("both don't wait until their context ends: %v", err)
			}
			j.want(t, 0)
		})
	})
	t.Run("an explicit owner re-enters", func(t *testing.T) {
		t.Parallel()
		inBubble(t, func(t *testing.T, s scene) {
			mutex, err := lock.NewMutex(s.client, "/locks/report")
			if err != nil {
				t.Fatal(err)
			}
			var j job
			succeed(t, func() error { return right(t.Context(), mutex, j.publish) })
			j.want(t, 1)
		})
	})
}

func wrong(ctx context.Context, mutex *lock.Mutex, publish func(context.Context, *lock.Lease) error) error {
	err := lock.Do(ctx, mutex, func(ctx context.Context, _ *lock.Lease) error {
		done := make(chan error)
		go func() { done <- lock.Do(ctx, mutex, publish) }() // another owner: waits for its parent
		return <-done                                        // which waits here
	})
	return err
}

func right(ctx context.Context, mutex *lock.Mutex, publish func(context.Context, *lock.Lease) error) error {
	ctx = lock.ContextWithOwner(ctx, lock.NewOwner("request 17"))
	err := lock.Do(ctx, mutex, func(ctx context.Context, _ *lock.Lease) error {
		done := make(chan error)
		go func() { done <- lock.Do(ctx, mutex, publish) }() // the same owner
		return <-done
	})
	return err
}
