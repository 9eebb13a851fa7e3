package fragments_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
)

// A function is what a page's lock.Do calls.
type function = func(context.Context, *lock.Lease) error

func multi(ctx context.Context, client *framework.Client, transfer function) error {
	from, err := lock.NewMutex(client, "/locks/accounts/7")
	if err != nil {
		return err
	}
	to, err := lock.NewMutex(client, "/locks/accounts/3")
	if err != nil {
		return err
	}
	both, err := lock.NewMulti(from, to)
	if err != nil {
		return err
	}
	err = lock.Do(ctx, both, transfer)
	return err
}

func mutex(ctx context.Context, client *framework.Client, writeReport func(context.Context) error, publish function) error {
	mutex, err := lock.NewMutex(client, "/locks/report")
	if err != nil {
		return err
	}
	err = lock.Do(ctx, mutex, func(ctx context.Context, _ *lock.Lease) error {
		return writeReport(ctx)
	})
	return errors.Join(err, local(ctx, mutex, publish))
}

func local(ctx context.Context, mutex *lock.Mutex, publish function) error {
	local, err := lock.NewLocal(mutex, 100)
	if err != nil {
		return err
	}
	err = lock.Do(ctx, local, publish)
	return err
}

func readWrite(ctx context.Context, client *framework.Client, search, replace function) error {
	catalogue, err := lock.NewRWMutex(client, "/locks/catalogue")
	if err != nil {
		return err
	}
	if err := lock.Do(ctx, catalogue.Read(), search); err != nil {
		return err
	}
	err = lock.Do(ctx, catalogue.Write(), replace)
	return err
}

// The holder's work ends when another client asks for the lock.
func TestRevocationPage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		other := connect(t, s.server)
		must.OK(t, ask(t.Context(), other, "/locks/disk")) // it is free
		var asked atomic.Bool
		done := make(chan error)
		go func() { done <- acceptRequests(t.Context(), s.client, &asked) }()
		synctest.Wait()
		must.OK(t, ask(t.Context(), other, "/locks/disk"))
		if err := <-done; !errors.Is(err, context.Canceled) || !asked.Load() {
			t.Errorf("the holder's work ends with %v, asked: %v", err, asked.Load())
		}
	})
}

func acceptRequests(ctx context.Context, client *framework.Client, asked *atomic.Bool) error {
	ctx, cancelWork := context.WithCancel(ctx)
	defer cancelWork()
	disk, err := lock.NewMutex(client, "/locks/disk", recipes.WithRevocation(func(*lock.Lease) { cancelWork() }))
	if err != nil {
		return err
	}
	return lock.Do(ctx, disk, func(ctx context.Context, _ *lock.Lease) error {
		<-ctx.Done()
		asked.Store(true)
		return ctx.Err()
	})
}

func ask(ctx context.Context, client *framework.Client, path string) error {
	disk, err := lock.NewMutex(client, path)
	if err != nil {
		return err
	}
	found, err := disk.Participants(ctx)
	if err != nil {
		return err
	}
	if len(found) > 0 { // the first is the holder
		err = lock.Revoke(ctx, client, found[0].Path)
	}
	return err
}

func semaphoreMutex(ctx context.Context, client *framework.Client, work func(context.Context) error) error {
	mutex, err := lock.NewSemaphoreMutex(client, "/locks/import")
	if err != nil {
		return err
	}
	lease, err := mutex.Lock(ctx)
	if err != nil {
		return err
	}
	done := make(chan error)
	go func() {
		defer lease.Release(ctx) // any goroutine that has the lease may release it
		held, stop := lease.Context(ctx)
		defer stop()
		done <- work(held)
	}()
	return <-done
}

func TestUnfairMutexPage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s scene) {
		var j job
		must.OK(t, unfairMutex(t.Context(), s.client, j.work))
		j.want(t, 1)
		must.OK(t, unfairMutex(t.Context(), s.client, func(context.Context) error {
			return unfairMutex(t.Context(), connect(t, s.server), j.work)
		}))
		j.want(t, 1)
	})
}

func unfairMutex(ctx context.Context, client *framework.Client, work func(context.Context) error) error {
	job, err := lock.NewUnfairMutex(client, "/jobs/nightly")
	if err != nil {
		return err
	}
	lease, err := job.TryLock(ctx)
	if errors.Is(err, lock.ErrHeld) {
		return nil // another host does it
	}
	if err != nil {
		return err
	}
	defer lease.Release(ctx)
	held, stop := lease.Context(ctx)
	defer stop()
	return work(held)
}
