package fragments_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
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
	inBubble(t, func(t *testing.T, s scene) {
		mutex := must.Get(lock.NewMutex(s.client, "/locks/report"))(t)
		var j job
		must.OK(t, right(t.Context(), mutex, j.publish))
		j.want(t, 1)
	})
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
