package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/locktest"
	"github.com/docent-go/docent/testing/zkenv"
)

// A broken lock is a mutex with a fault, by its Lock and TryLock.
type broken struct {
	lock.Locker
	onLock, onTry func(ctx context.Context, l lock.Locker) (*lock.Lease, error)
}

func (b broken) Lock(ctx context.Context) (*lock.Lease, error) {
	if b.onLock == nil {
		return b.Locker.Lock(ctx)
	}
	return b.onLock(ctx, b.Locker)
}

func (b broken) TryLock(ctx context.Context) (*lock.Lease, error) {
	if b.onTry == nil {
		return b.Locker.TryLock(ctx)
	}
	return b.onTry(ctx, b.Locker)
}

// A breach is a fault and what of a lock's promises it breaks.
type breach struct {
	name      string
	newLocker locktest.NewLocker
	opts      []locktest.Option
	breaks    []string // the beginnings of sentences, among others
}

func breaches() []breach {
	var serial atomic.Int64
	mutex := func(t testing.TB, c *framework.Client, path string) lock.Locker {
		t.Helper()
		return must.Get(lock.NewMutex(c, path))(t)
	}
	with := func(b broken) locktest.NewLocker {
		return func(t testing.TB, c *framework.Client, path string) lock.Locker {
			t.Helper()
			own := b // tests run side by side
			own.Locker = mutex(t, c, path)
			return own
		}
	}
	return []breach{
		{"excludes nobody", func(t testing.TB, c *framework.Client, path string) lock.Locker {
			t.Helper()
			return mutex(t, c, fmt.Sprint(path, "/", serial.Add(1)))
		}, nil, []string{"Lock_waits", "Two_owners", "TryLock_never_waits", "ctx_bounds_the_wait", "Do_calls_fn"}},
		{"does not heed ctx", with(broken{onLock: func(ctx context.Context, l lock.Locker) (*lock.Lease, error) {
			return l.Lock(context.WithoutCancel(ctx))
		}}), nil, []string{"If_ctx_ends_first,_Lock's", "Nothing_of_an_attempt", "ctx_bounds_every_call"}},
		{"hides why it failed", with(broken{onLock: func(ctx context.Context, l lock.Locker) (*lock.Lease, error) {
			lease, err := l.Lock(ctx)
			if err != nil {
				return nil, errors.New("timeout")
			}
			return lease, nil
		}}), nil, []string{"If_ctx_ends_first,_Lock's", "If_the_lock_can't_be_had", "A_lease_is_lost,_and_a_wait_ended"}},
		{"returns a lease together with an error", with(broken{onLock: func(ctx context.Context, l lock.Locker) (*lock.Lease, error) {
			lease, err := l.Lock(ctx)
			return lease, errors.Join(err, errors.New("late"))
		}}), nil, []string{"Lock_waits", "Two_owners"}},
		{"TryLock waits", with(broken{onTry: func(ctx context.Context, l lock.Locker) (*lock.Lease, error) {
			ctx, cancel := context.WithTimeout(ctx, zkenv.SessionTimeout)
			defer cancel()
			lease, err := l.Lock(ctx)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", lock.ErrHeld, err)
			}
			return lease, nil
		}}), nil, []string{"TryLock_never_waits", "TryLock_returns_ErrNotConnected"}},
		{"leaves a ghost", with(broken{onLock: func(ctx context.Context, l lock.Locker) (*lock.Lease, error) {
			lease, err := l.Lock(ctx)
			if err != nil && ctx.Err() != nil {
				go func() { // as a retry that no caller waits for
					_, _ = l.Lock(lock.ContextWithOwner(context.Background(), lock.NewOwner("ghost")))
				}()
			}
			return lease, err
		}}), nil, []string{"If_ctx_ends_first,_Lock's", "Nothing_of_an_attempt", "A_call_that_has_ended_leaves_no_goroutine", "Whichever_reply_is_lost"}},
		{"is not reentrant", func(t testing.TB, c *framework.Client, path string) lock.Locker {
			t.Helper()
			return must.Get(lock.NewSemaphoreMutex(c, path))(t)
		}, []locktest.Option{locktest.Reentrant()}, []string{"An_owner_that_has_the_lock", "A_lost_lock_is_lost"}},
		{"has a permit more", permit(3, 1), []locktest.Option{locktest.Permits(2, permit(3, 2))}, []string{"All_permits_are_held"}},
		{"is not shared", mutex, []locktest.Option{locktest.Shared(mutex)}, []string{"Any_number_of_owners"}},
	}
}

// permit returns what makes locks that take n permits of a semaphore.
func permit(permits, n int) locktest.NewLocker {
	return func(t testing.TB, c *framework.Client, path string) lock.Locker {
		t.Helper()
		s := must.Get(semaphore.New(c, path, permits))(t)
		return permitsLock{s, n}
	}
}

// A permitsLock is a semaphore as a lock: its holders have n permits.
type permitsLock struct {
	*semaphore.Semaphore
	n int
}

func (p permitsLock) Lock(ctx context.Context) (*lock.Lease, error) { return p.Acquire(ctx, p.n) }

func (p permitsLock) TryLock(ctx context.Context) (*lock.Lease, error) { return p.TryAcquire(ctx, p.n) }

// breachVariable names the lock that TestBreach is to run with.
const breachVariable = "LOCKTEST_BREACH"

// TestBreach fails, in a process of its own: see TestBreachesAreFound.
func TestBreach(t *testing.T) {
	for _, b := range breaches() {
		if b.name == os.Getenv(breachVariable) {
			locktest.Run(t, b.newLocker, append(b.opts, locktest.In(zkenv.Only("it is to be quick", zkenv.Embedded)))...)
		}
	}
}

func TestBreachesAreFound(t *testing.T) {
	t.Parallel()
	program := must.Get(os.Executable())(t)
	for _, b := range breaches() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			var sentences []string
			for _, sentence := range b.breaks {
				sentences = append(sentences, regexp.QuoteMeta(sentence))
			}
			only := "^TestBreach$/^(" + strings.Join(sentences, "|") + ")"
			cmd := exec.CommandContext(t.Context(), program, "-test.run", only, "-test.v", "-test.timeout", "5m")
			cmd.Env = append(os.Environ(), breachVariable+"="+b.name, "ZK_TEST=none", "ZK_REAL=")
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("all promises are kept:\n%s", out)
			}
			for _, sentence := range b.breaks {
				if !strings.Contains(string(out), "--- FAIL: TestBreach/"+sentence) {
					t.Errorf("not found to be broken: %s\n%s", sentence, summary(out))
				}
			}
		})
	}
}

// summary returns the lines of a test's output that say what failed and why.
func summary(out []byte) string {
	var b strings.Builder
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "--- FAIL") || strings.Contains(line, ".go:") && !strings.Contains(line, "only in") || strings.HasPrefix(line, "panic") {
			b.WriteString(line)
		}
	}
	return b.String()
}
