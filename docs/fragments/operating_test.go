package fragments_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/cache"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/recipes/lease"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkserver"
)

var update = flag.Bool("update", false, "write the logs of the stories into docs/operating.md")

// A night is an ensemble of three servers, and a service at work: it leads, it has a cache of its
// configuration, and it writes a report under a lock each minute.
type night struct {
	t       *testing.T
	servers atomic.Pointer[zkserver.Server]
	at      atomic.Value // address of the latest connection
	log     bytes.Buffer // written by the service's client
}

func (n *night) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := n.servers.Load().Dial(ctx, network, addr)
	if err == nil {
		n.at.Store(addr)
	}
	return conn, err
}

func (n *night) start() {
	n.servers.Store(must.Get(zkserver.Start(zkserver.WithFrontends(3), zkserver.WithLeader(0)))(n.t))
}

// kill ends servers as kill -9 does, and restart starts them with what they had on disk.
func (n *night) kill(members ...int) {
	for _, i := range members {
		n.servers.Load().Frontend(i).Refuse()
		n.servers.Load().Frontend(i).Cut()
	}
}

func (n *night) restart(members ...int) {
	for _, i := range members {
		n.servers.Load().Frontend(i).Accept()
	}
}

// connected returns the number of the server that the service is connected to.
func (n *night) connected() int {
	synctest.Wait()
	for i, f := range n.servers.Load().Frontends() {
		if f.Addr() == n.at.Load() {
			return i
		}
	}
	n.t.Fatal("the service is not connected")
	return 0
}

// client returns a client of the ensemble, of another process unless it has the service's log.
func (n *night) client(opts ...framework.Option) *framework.Client {
	var addrs []string
	for _, f := range n.servers.Load().Frontends() {
		addrs = append(addrs, f.Addr())
	}
	opts = append(opts, framework.WithDialer(n.dial))
	return must.Get(framework.NewClient(strings.Join(addrs, ","), opts...))(n.t)
}

// serve runs the service until ctx ends.
func (n *night) serve(ctx context.Context) {
	log := slog.New(slog.NewTextHandler(&n.log, &slog.HandlerOptions{ReplaceAttr: shown}))
	client := n.client(framework.WithSlog(log))
	defer func() { must.OK(n.t, client.Close()) }()
	config := must.Get(cache.New(client, "/config"))(n.t)
	defer func() { must.OK(n.t, config.Close()) }()
	election := must.Get(leader.New(client, "/leaders/billing"))(n.t)
	report := must.Get(lock.NewMutex(client, "/locks/report"))(n.t)
	var leading sync.WaitGroup
	defer leading.Wait()
	leading.Go(func() {
		err := election.Run(ctx, func(ctx context.Context, _ *lease.Lease) error {
			<-ctx.Done()
			return nil
		})
		if ctx.Err() == nil {
			n.t.Errorf("election: %v", err)
		}
	})
	for ctx.Err() == nil {
		err := lock.Do(ctx, report, func(ctx context.Context, _ *lease.Lease) error { return sleep(ctx, 30*time.Second) })
		if err != nil && ctx.Err() == nil {
			log.Error("no report was written", "err", err)
		}
		_ = sleep(ctx, 30*time.Second)
	}
}

// shown leaves of a line what a reader needs first. The error of a connection that breaks is that of a read.
func shown(_ []string, a slog.Attr) slog.Attr {
	for _, key := range []string{
		"level", "msg", "error", "hint", "server.address", "zookeeper.client.connection.state", "zookeeper.session.holds",
		"zookeeper.node.path", "zookeeper.cache.nodes", "zookeeper.lock.path", "process", "owner",
	} {
		if a.Key == key && a.Value.String() == io.ErrClosedPipe.Error() { // of a write; a read returns EOF
			return slog.String(key, io.EOF.Error())
		}
		if a.Key == key {
			return a
		}
	}
	return slog.Attr{}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A story is what happens to the ensemble, under its heading in docs/operating.md.
type story struct {
	heading string
	happens func(n *night)
	hint    string // what the log has to name; "" if there is nothing to do
}

func stories() []story {
	const minute = time.Minute
	return []story{
		{"The servers are restarted one after another", func(n *night) {
			first := n.connected()
			for i := range 3 {
				n.kill((first + i) % 3)
				<-time.After(10 * time.Second)
				n.restart((first + i) % 3)
				<-time.After(minute)
			}
		}, ""},
		{"All three servers are killed", func(n *night) {
			n.kill(0, 1, 2)
			<-time.After(4 * minute)
			n.restart(0, 1, 2)
			<-time.After(2 * minute)
		}, "check that most servers run"},
		{"The ensemble is wiped", func(n *night) {
			old := n.servers.Load()
			n.kill(0, 1, 2)
			<-time.After(20 * time.Second)
			n.start()
			must.OK(n.t, old.Close())
			<-time.After(2 * minute)
		}, "restore a snapshot"},
		{"A holder is stuck", func(n *night) {
			ctx, other := n.t.Context(), n.client()
			data := lease.Metadata{Version: lease.MetadataVersion, Host: "batch-3", PID: 811, Owner: "nightly"}.Encode()
			node := must.Get(other.Create(ctx, "/locks/report/_c_1f3b2c4d-0000-4000-8000-000000000000-lock-", data,
				framework.Ephemeral(), framework.Sequential()))(n.t)
			<-time.After(10 * minute)
			must.OK(n.t, other.Delete(ctx, node))
			must.OK(n.t, other.Close())
			<-time.After(2 * minute)
		}, "docent queue --blocked-by /locks/report"},
		{"The disks are full", func(n *night) {
			// A server that can't write its log exits, and again each time that it is started.
			first := n.connected()
			n.kill(first)
			<-time.After(minute)
			second := n.connected()
			n.kill(3 - first - second)
			n.servers.Load().Frontend(second).Isolate() // it has no quorum
			<-time.After(8 * minute)
			n.restart(first, 3-first-second)
			n.servers.Load().Frontend(second).Heal()
			<-time.After(2 * minute)
		}, "have room on their disks"},
	}
}

// most is how many lines of a story a person reads at night.
const most = 20

// TestLogsOfANight: the log of the service in each story is short and says what to do, and docs/operating.md
// has its lines. With -update the test writes the page.
func TestLogsOfANight(t *testing.T) {
	const file = "../operating.md"
	page := string(must.Get(os.ReadFile(file))(t))
	for _, story := range stories() {
		log := logOf(t, story)
		if n := strings.Count(log, "\n"); n > most {
			t.Errorf("%s: %d lines, want %d at the most:\n%s", story.heading, n, most, log)
		}
		if !strings.Contains(log, story.hint) {
			t.Errorf("%s: the log does not name %q:\n%s", story.heading, story.hint, log)
		}
		before, block, after := cut(t, page, story.heading)
		lines := kinds(log)
		if *update {
			page = before + lines + after
		} else if got, want := alike(lines), alike(block); !slices.Equal(got, want) {
			t.Errorf("%s: %s has other lines; -update writes these:\n%s", story.heading, file, lines)
		}
	}
	if *update {
		must.OK(t, os.WriteFile(file, []byte(page), 0o644))
	}
}

// logOf returns the lines that the service logs from the beginning of the story on.
func logOf(t *testing.T, s story) (log string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &night{t: t}
		n.start()
		defer func() { must.OK(t, n.servers.Load().Close()) }()
		setup := n.client()
		must.Get(setup.Create(t.Context(), "/config", nil))(t)
		must.OK(t, setup.Close())
		ctx, cancel := context.WithCancel(t.Context())
		var service sync.WaitGroup
		service.Go(func() { n.serve(ctx) })
		<-time.After(95 * time.Second)
		synctest.Wait()
		begin := n.log.Len()
		s.happens(n)
		synctest.Wait()
		log = string(n.log.Bytes()[begin:]) // before the service ends
		cancel()
		service.Wait()
	})
	return log
}

// cut returns the page before, in and after the log below the heading.
func cut(t *testing.T, page, heading string) (before, log, after string) {
	t.Helper()
	at := strings.Index(page, "### "+heading+"\n")
	if at < 0 {
		t.Fatalf("the page has no heading %q", heading)
	}
	const fence = "```text\n"
	begin := at + strings.Index(page[at:], fence) + len(fence)
	end := begin + strings.Index(page[begin:], "```\n")
	return page[:begin], page[begin:end], page[end:]
}

// varies matches what a run of a story chooses at random, or by how long its pauses are. A cache may notice a
// break before it is told why.
var varies = regexp.MustCompile(`0x[0-9a-f]+|([0-9]+(\.[0-9]+)?(h|m|s|ms|µs|ns))+\b|[0-9]+|path=/config error=("[^"]+"|\w+)`)

// kinds returns the first line of each kind, and how many there are.
func kinds(log string) string {
	var lines []string
	count := make(map[string]int) // by kind
	for line := range strings.Lines(log) {
		kind := varies.ReplaceAllString(line, "…")
		if count[kind]++; count[kind] == 1 {
			lines = append(lines, line)
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "level=")
		if n := count[varies.ReplaceAllString(line, "…")]; n > 1 {
			lines[i] = fmt.Sprintf("%d× %s", n, lines[i])
		}
	}
	return strings.Join(lines, "")
}

// alike returns the lines without what varies, sorted.
func alike(log string) []string {
	var lines []string
	for line := range strings.Lines(log) {
		if count, rest, found := strings.Cut(line, "× "); found && !strings.Contains(count, " ") {
			line = rest
		}
		lines = append(lines, varies.ReplaceAllString(line, "…"))
	}
	slices.Sort(lines)
	return lines
}
