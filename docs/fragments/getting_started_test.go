package fragments_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

// The first fragment needs a server that is reached by TCP, as the user's is.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	server := zkserver.Run(t)
	addr := must.Get(server.Listen("127.0.0.1:0"))(t)
	var j job
	must.OK(t, oneClient(t.Context(), addr+"/myservice", j.work))
	j.want(t, 2)
	if len(server.Sessions()) != 0 {
		t.Error("the client is not closed")
	}
}

func oneClient(ctx context.Context, servers string, work func(context.Context) error) error {
	client, err := framework.NewClient(servers, // such as "zk1:2181,zk2:2181,zk3:2181/myservice"
		framework.WithSessionTimeout(15*time.Second),
		framework.WithSlog(slog.Default()), // without it, docent logs nothing
	)
	if err != nil {
		return err
	}
	defer client.Close()
	return oneLock(ctx, client, work)
}

func oneLock(ctx context.Context, client *framework.Client, work func(context.Context) error) error {
	mutex, err := lock.NewMutex(client, "/locks/report")
	if err != nil {
		return err
	}
	err = lock.Do(ctx, mutex, func(ctx context.Context, _ *lock.Lease) error {
		return work(ctx)
	})
	return errors.Join(err, stepByStep(ctx, mutex, work))
}

func stepByStep(ctx context.Context, mutex *lock.Mutex, work func(context.Context) error) error {
	wait, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	lease, err := mutex.Lock(wait) // wait bounds the wait, and not the lease
	if err != nil {
		return err
	}
	defer lease.Release(ctx)
	held, stop := lease.Context(ctx) // ends when the lease is lost or released
	defer stop()
	return work(held)
}

func TestGettingStarted_while_another_host_holds_the_lock(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		s.hold(t, "/locks/report")
		mutex := must.Get(lock.NewMutex(s.client, "/locks/report"))(t)
		var j job
		if err := stepByStep(t.Context(), mutex, j.work); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait of more than its bound: %v", err)
		}
		j.want(t, 0)
	})
}

// Without a server an operation of the client fails after half a minute, and a lock waits.
func TestGettingStarted_without_a_server(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("connection refused") }
		client := must.Get(framework.NewClient("localhost:2181", framework.WithDialer(dial)))(t)
		defer client.Close()
		mutex := must.Get(lock.NewMutex(client, "/locks/report"))(t)
		for name, tc := range map[string]struct {
			call     func(ctx context.Context) error
			from, to time.Duration
		}{
			"Get": {func(ctx context.Context) error {
				_, _, err := client.Get(ctx, "/report")
				return err
			}, 25 * time.Second, 40 * time.Second},
			"Lock": {func(ctx context.Context) error {
				_, err := mutex.Lock(ctx)
				return err
			}, 5 * time.Minute, 5 * time.Minute},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			begin := time.Now()
			err := tc.call(ctx)
			if took := time.Since(begin); took < tc.from || took > tc.to || err == nil || !strings.Contains(err.Error(), "localhost:2181") {
				t.Errorf("%s fails after %v with %v", name, took, err)
			}
		}
	})
}
