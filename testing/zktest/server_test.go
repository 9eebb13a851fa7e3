package zktest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// soon bounds what takes milliseconds on an idle machine.
const soon = 20 * time.Second

func TestServerComesAndGoes(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	mode, err := server.Mode(t.Context())
	if err != nil || mode != zktest.Standalone {
		t.Fatalf("Mode() = %q, %v; want standalone", mode, err)
	}
	pid := server.Pid()
	if pid == 0 || !alive(pid) {
		t.Fatalf("Pid() = %d; want a process that runs", pid)
	}
	must.OK(t, server.Close())
	if alive(pid) {
		t.Errorf("process %d runs after Close", pid)
	}
	if got := server.Pid(); got != 0 {
		t.Errorf("Pid() after Close = %d; want 0", got)
	}
	if err := server.Restart(t.Context()); !errors.Is(err, zktest.ErrClosed) {
		t.Errorf("Restart() after Close = %v; want ErrClosed", err)
	}
	if err := server.Close(); err != nil {
		t.Errorf("second Close() = %v; want nil", err)
	}
}

func TestRestartKeepsDataAndAddress(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	addr := server.Addr()
	create(t, connect(t, server), "/kept", 0)
	stops := map[string]func() error{
		"after Kill": server.Kill,
		"after Stop": func() error { return server.Stop(t.Context()) },
		"at once":    func() error { return nil },
		"after Stop of a frozen process": func() error {
			return errors.Join(server.Freeze(), server.Stop(t.Context()))
		},
	}
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			before := server.Pid()
			must.OK(t, stop())
			if name != "at once" {
				if _, err := server.Mode(t.Context()); err == nil {
					t.Error("Mode() of a stopped server: want an error")
				}
				if err := server.Freeze(); !errors.Is(err, zktest.ErrStopped) {
					t.Errorf("Freeze() of a stopped server = %v; want ErrStopped", err)
				}
			}
			must.OK(t, server.Restart(t.Context()))
			if alive(before) || server.Pid() == before {
				t.Errorf("process %d of the time before runs", before)
			}
			if server.Addr() != addr {
				t.Errorf("Addr() = %s; want %s as before", server.Addr(), addr)
			}
			if ok, _, err := connect(t, server).Exists("/kept"); err != nil || !ok {
				t.Errorf("node of the time before: %v, %v; want it kept", ok, err)
			}
		})
	}
}

func TestFrozenServerAnswersAfterThaw(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	must.OK(t, server.Freeze())
	ctx := deadline(t, 200*time.Millisecond)
	if answer, err := server.FourLetter(ctx, "ruok"); !errors.Is(err, ctx.Err()) {
		t.Errorf("ruok to a frozen server = %q, %v; want the context's error", answer, err)
	}
	must.OK(t, server.Thaw())
	if answer, err := server.FourLetter(t.Context(), "ruok"); err != nil || answer != "imok" {
		t.Errorf("ruok after Thaw = %q, %v; want imok", answer, err)
	}
}

func TestServerInManyHands(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	// Starts wait for one another: each has the time that Run gives to one.
	restart := func() error {
		ctx := deadline(t, time.Minute)
		return server.Restart(ctx)
	}
	ctx := deadline(t, time.Minute)
	var hands sync.WaitGroup
	for range 2 {
		// The result of a restart depends on the other calls in between; the test checks that it
		// returns.
		hands.Go(func() { _ = restart() })
		hands.Go(func() {
			if err := server.Kill(); err != nil {
				t.Error(err)
			}
		})
		hands.Go(func() {
			if err := server.Stop(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	hands.Wait()
	if err := restart(); err != nil {
		t.Errorf("Restart() after it all = %v; want it to work", err)
	}
	for range 2 {
		hands.Go(func() { _ = restart() })
		hands.Go(func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	hands.Wait()
	if pid := server.Pid(); pid != 0 {
		t.Errorf("process %d runs after Close", pid)
	}
	if _, err := os.Stat(server.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory after Close: %v; want it gone", err)
	}
}

func TestLogOfTheServerIsShownWhenATestFails(t *testing.T) {
	t.Parallel()
	zktest.Shared(t) // for its rules about a missing server
	for _, c := range []struct{ name, failure, want string }{
		{"a test that fails", "failed", "standalone mode"},
		{"a test that passes", "", ""},
	} {
		double := &failing{failure: c.failure}
		t.Run(c.name, func(t *testing.T) {
			double.TB = t
			zktest.Run(double)
		})
		if !strings.Contains(double.log, c.want) || (c.want == "") != (double.log == "") {
			t.Errorf("%s logs %q; want %q in it", c.name, double.log, c.want)
		}
	}
}

func TestStartAtATakenPort(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	stranger := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer stranger.Close()
	for _, c := range []struct {
		name string
		port int
	}{
		{"another ZooKeeper's, which answers every question", server.Port()},
		{"a stranger's, who answers none", stranger.Addr().(*net.TCPAddr).Port},
	} {
		t.Run(c.name, func(t *testing.T) {
			second, err := zktest.StartAt(t.Context(), c.port)
			if err == nil {
				second.Close()
			}
			if !errors.Is(err, zktest.ErrPortTaken) {
				t.Fatalf("StartAt() = %v; want the error about a taken port", err)
			}
			if !strings.Contains(err.Error(), "BindException") {
				t.Errorf("error without the server's log: %v", err)
			}
		})
	}
}

func TestStartIsRepeatedOnlyForTakenPorts(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	taken := fmt.Errorf("start: %w", zktest.ErrPortTaken)
	for _, c := range []struct {
		name  string
		errs  []error // of the starts, in their order; nil after the last
		want  error
		calls int
	}{
		{"success at once", nil, nil, 1},
		{"another error", []error{other}, other, 1},
		{"a taken port, then success", []error{taken}, nil, 2},
		{"taken ports, then another error", []error{taken, taken, other}, other, 3},
		{"ports that are always taken", []error{taken, taken, taken, taken, taken, taken}, taken, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			_, err := zktest.RetryTaken(func() (int, error) {
				calls++
				if calls > len(c.errs) {
					return 0, nil
				}
				return 0, c.errs[calls-1]
			})
			if !errors.Is(err, c.want) || calls != c.calls {
				t.Errorf("%d starts and error %v; want %d and %v", calls, err, c.calls, c.want)
			}
		})
	}
}

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	count := func() int64 {
		return must.Get(server.Requests(t.Context()))(t)
	}
	if got := count(); got != 0 {
		t.Errorf("Requests() before any client = %d; want 0", got)
	}
	conn := connect(t, server)
	if got := count(); got != 1 {
		t.Errorf("Requests() after a handshake = %d; want 1", got)
	}
	const reads = 20
	for range reads {
		must.Get2(conn.Exists("/"))(t)
	}
	if got := count(); got != 1+reads {
		t.Errorf("Requests() after %d reads = %d; want %d", reads, got, 1+reads)
	}
	must.OK(t, server.Restart(t.Context()))
}
