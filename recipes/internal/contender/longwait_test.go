package contender_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/barrier"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/semaphore"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// Package net makes its resolver at the first look-up. One that is made in a bubble ends the process
// when it is used outside.
var _, _ = net.DefaultResolver.LookupHost(context.Background(), "localhost")

// An acquirer is a recipe's value for one client.
type acquirer struct {
	acquire      func(context.Context) (*lease.Lease, error)
	participants func(context.Context) ([]lease.Participant, error) // nil if they have no data
}

func lockOf[L lock.Locker](l L, participants func(context.Context) ([]lease.Participant, error)) acquirer {
	return acquirer{l.Lock, participants}
}

// TestEachRecipeLogsLongWaits: a call that waits logs, after two seconds and then at growing intervals, what
// it waits for, and which process that is, as its error does. After a minute the line is a warning that says
// where to see more. A candidate of an election waits as long as all is well, and logs nothing.
func TestEachRecipeLogsLongWaits(t *testing.T) {
	t.Parallel()
	const path = "/report"
	host := must.Get(os.Hostname())(t)
	for name, tt := range map[string]struct {
		of   func(t *testing.T, c *framework.Client) acquirer
		what string // "" if nothing is logged
	}{
		"mutex": {func(t *testing.T, c *framework.Client) acquirer {
			m := must.Get(lock.NewMutex(c, path))(t)
			return lockOf(m, m.Participants)
		}, "the lock"},
		"write side": {func(t *testing.T, c *framework.Client) acquirer {
			m := must.Get(lock.NewRWMutex(c, path))(t)
			return lockOf(m.Write(), m.Participants)
		}, "the lock"},
		"unfair mutex": {func(t *testing.T, c *framework.Client) acquirer {
			m := must.Get(lock.NewUnfairMutex(c, path))(t)
			return lockOf(m, m.Participants)
		}, "the lock"},
		"semaphore mutex": {func(t *testing.T, c *framework.Client) acquirer {
			m := must.Get(lock.NewSemaphoreMutex(c, path))(t)
			return lockOf(m, m.Participants)
		}, "the lock"},
		"semaphore": {func(t *testing.T, c *framework.Client) acquirer {
			s := must.Get(semaphore.New(c, path, 2))(t)
			return acquirer{func(ctx context.Context) (*lease.Lease, error) { return s.Acquire(ctx, 2) }, s.Participants}
		}, "permits"},
		"election": {func(t *testing.T, c *framework.Client) acquirer {
			e := must.Get(leader.New(c, path))(t)
			return acquirer{e.Campaign, e.Participants}
		}, ""},
	} {
		for by, from := range map[string]struct {
			own     bool            // the holder is the waiter's client
			foreign *lease.Metadata // of another process, if the holder is one
			suffix  string
			text    string // of the error of a mutex
		}{
			"another owner of the client": {
				own: true, suffix: ", which another owner of this client has or waits for", text: ", which is this one)",
			},
			"another session of the process": {
				suffix: ", which another session of this process has or waits for", text: ", which is this one)",
			},
			"another process": {foreign: &lease.Metadata{Host: "batch-3", PID: 811, Owner: "nightly"}, text: "process 811 on batch-3)"},
			"a container with this host and pid": {
				foreign: &lease.Metadata{Host: host, PID: os.Getpid(), Process: "0123456789abcdef"},
				text:    fmt.Sprintf("process %d on %s)", os.Getpid(), host),
			},
		} {
			t.Run(name+"/"+by, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					core, logs := observer.New(zapcore.InfoLevel)
					server := zkserver.Run(t, zkenv.DrawVersion(t)...)
					waiter := longWaiter(t, server, framework.WithLogger(zap.New(core)))
					holder := waiter
					if !from.own {
						holder = longWaiter(t, server)
					}
					held := tt.of(t, holder)
					must.Get(held.acquire(lock.ContextWithOwner(t.Context(), lock.NewOwner("first"))))(t)
					if from.foreign != nil {
						synctest.Wait() // a semaphore's znode in the queue is deleted behind the grant
						becomeForeign(t, holder, held, *from.foreign)
					}
					want := []string{"2s info", "6s info", "14s info", "30s info", "1m2s warn see who holds it: docent queue --blocked-by /report"}
					if tt.what == "" {
						want = nil
					}
					lines, err := linesOfAWait(t, logs, 100*time.Second, tt.of(t, waiter).acquire)
					if name == "mutex" && !strings.Contains(err.Error(), from.text) {
						t.Errorf("error %v, want one that says %q", err, from.text)
					}
					var got []string
					for _, line := range lines {
						got = append(got, line.when)
						if line.message != "still waiting for "+tt.what+from.suffix {
							t.Errorf("line %q", line.message)
						}
						if owner, has := line.fields["owner"]; has && owner == "" {
							t.Errorf("a field of an owner without a name: %v", line.fields)
						}
						process, known := line.fields["process"]
						if m := from.foreign; m != nil && process != fmt.Sprintf("%d on %s", m.PID, m.Host) || m == nil && !from.own && !known {
							t.Errorf("fields %v, want the process", line.fields)
						}
					}
					if !slices.Equal(got, want) {
						t.Errorf("lines %q, want %q", got, want)
					}
				})
			})
		}
	}
}

// TestADoubleBarrierLogsLongWaits: a member that waits for others logs how many are missing.
func TestADoubleBarrierLogsLongWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.InfoLevel)
		server := zkserver.Run(t, zkenv.DrawVersion(t)...)
		own, other := longWaiter(t, server, framework.WithLogger(zap.New(core))), longWaiter(t, server)
		d, theirs := must.Get(barrier.NewDouble(own, "/step", 2))(t), must.Get(barrier.NewDouble(other, "/step", 2))(t)
		expect := func(what string, wait func(context.Context) (*lease.Lease, error)) {
			t.Helper()
			lines, _ := linesOfAWait(t, logs, 10*time.Second, wait)
			if len(lines) != 2 || lines[0].when != "2s info" || lines[1].when != "6s info" {
				t.Errorf("%s: lines %v, want two", what, lines)
			}
			for _, line := range lines {
				if line.message != "still waiting for other members to "+what || line.fields["zookeeper.lock.queue.position"] != int64(1) ||
					line.fields["zookeeper.lock.path"] != "/step" {
					t.Errorf("%s: %v", what, line)
				}
			}
		}
		expect("enter", d.Enter)
		entering := recipetest.Later(t.Context(), theirs.Enter)
		place := must.Get(d.Enter(t.Context()))(t)
		recipetest.Granted(t, entering)
		expect("leave", func(ctx context.Context) (*lease.Lease, error) { return nil, d.Leave(ctx, place) })
	})
}

// becomeForeign gives the holder's znodes the data of another process.
func becomeForeign(t *testing.T, c *framework.Client, held acquirer, process lease.Metadata) {
	t.Helper()
	process.Version = lease.MetadataVersion
	for _, p := range must.Get(held.participants(t.Context()))(t) {
		must.Get(c.Set(t.Context(), p.Path, process.Encode(), framework.AnyVersion))(t)
	}
}

// A longLine is a log line of a wait.
type longLine struct {
	when    string // since the beginning of the wait, with the level and the hint
	message string
	fields  map[string]any
}

// linesOfAWait returns the lines that are logged during a wait that takes as long as d, and its error.
func linesOfAWait(
	t *testing.T, logs *observer.ObservedLogs, d time.Duration, wait func(context.Context) (*lease.Lease, error),
) (lines []longLine, err error) {
	t.Helper()
	ctx := recipetest.Within(t, d)
	began := time.Now()
	if _, err = wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the wait ends with %v", err)
	}
	for _, e := range logs.TakeAll() {
		if e.LoggerName != "zk.lock" {
			continue
		}
		when := e.Time.Sub(began).Round(time.Second).String() + " " + e.Level.String()
		if hint, ok := e.ContextMap()["hint"].(string); ok {
			when += " " + hint
		}
		lines = append(lines, longLine{when, e.Message, e.ContextMap()})
	}
	return lines, err
}

func longWaiter(t *testing.T, server *zkserver.Server, opts ...framework.Option) *framework.Client {
	t.Helper()
	return recipetest.Client(t, server.Addr(), append(opts, framework.WithDialer(server.Dial))...)
}
