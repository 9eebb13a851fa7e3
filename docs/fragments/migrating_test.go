package fragments_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/recipes/lock"
)

func TestMigratingFromCuratorPage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		var j job
		succeed(t, func() error { return fromCurator(t.Context(), s.client, j.publish) })
		s.hold(t, "/locks/report")
		if err := fromCurator(t.Context(), s.client, j.publish); !errors.Is(err, errBusy) {
			t.Errorf("a lock that another host holds: %v, want %v", err, errBusy)
		}
		s.server.Freeze()
		<-time.After(time.Minute) // the client gives the connection up
		if err := fromCurator(t.Context(), s.client, j.publish); !errors.Is(err, framework.ErrNotConnected) {
			t.Errorf("a frozen server: %v, want %v", err, framework.ErrNotConnected)
		}
		s.server.Thaw()
		j.want(t, 1)
	})
}

var errBusy = errors.New("busy")

func fromCurator(ctx context.Context, client *framework.Client, writeReport function) error {
	mutex, err := lock.NewMutex(client, "/locks/report")
	if err != nil {
		return err
	}
	err = lock.Do(ctx, mutex, writeReport, lock.WaitAtMost(5*time.Second)) // its ctx ends if the lock is lost
	var busy *lock.WaitError
	if errors.As(err, &busy) && !errors.Is(err, framework.ErrNotConnected) {
		return errBusy
	}
	return err
}

func TestMigratingFromGoZooKeeperPage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		var j job
		succeed(t, func() error { return fromGoZooKeeper(t.Context(), s.client, j.publish) })
		j.want(t, 1)
	})
}

func fromGoZooKeeper(ctx context.Context, client *framework.Client, writeReport function) error {
	mutex, err := lock.NewMutex(client, "/locks/report")
	if err != nil {
		return err
	}
	return lock.Do(ctx, mutex, writeReport) // its ctx ends if the lock is lost
}

func TestMigratingFromKazooPage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		var j job
		succeed(t, func() error { return fromKazoo(t.Context(), s.client, j.publish) })
		j.want(t, 1)
	})
}

func fromKazoo(ctx context.Context, client *framework.Client, writeReport function) error {
	mutex, err := lock.NewMutex(client, "/locks/report", lock.WithData([]byte("host-7")))
	if err != nil {
		return err
	}
	return lock.Do(ctx, mutex, writeReport)
}
