package zktest_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/check"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// soon bounds what takes milliseconds on an idle machine.
const soon = 20 * time.Second

func TestServerComesAndGoes(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	mode, err := server.Mode(t.Context())
	must.That(t, err == nil && mode == zktest.Standalone, "Mode() = %q, %v; want standalone", mode, err)
	pid := server.Pid()
	must.That(t, pid != 0 && alive(pid), "Pid() = %d; want a process that runs", pid)
	must.OK(t, server.Close())
	check.That(t, !alive(pid), "process %d runs after Close", pid)
	check.Equal(t, server.Pid(), 0, "Pid() after Close")
	check.Is(t, server.Restart(t.Context()), zktest.ErrClosed, "Restart() after Close")
	check.Is(t, server.Close(), nil, "second Close()")
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
				_, err := server.Mode(t.Context())
				check.That(t, err != nil, "Mode() of a stopped server: want an error")
				check.Is(t, server.Freeze(), zktest.ErrStopped, "Freeze() of a stopped server")
			}
			must.OK(t, server.Restart(t.Context()))
			check.That(t, !alive(before) && server.Pid() != before, "process %d of the time before runs", before)
			check.Equal(t, server.Addr(), addr, "Addr(); want %s as before", addr)
			check.Equal(t, must.First(connect(t, server).Exists("/kept"))(t), true,
				"node of the time before; want it kept")
		})
	}
}

func TestFrozenServerAnswersAfterThaw(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	must.OK(t, server.Freeze())
	ctx, cancel := deadline(t, 200*time.Millisecond)
	defer cancel()
	if answer, err := server.FourLetter(ctx, "ruok"); !errors.Is(err, ctx.Err()) {
		t.Errorf("ruok to a frozen server = %q, %v; want the context's error", answer, err)
	}
	must.OK(t, server.Thaw())
	check.Equal(t, must.Get(server.FourLetter(t.Context(), "ruok"))(t), "imok", "ruok after Thaw; want imok")
}

func TestServerInManyHands(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t)
	// Starts wait for one another: each has the time that Run gives to one.
	restart := func() error {
		ctx, cancel := deadline(t, time.Minute)
		defer cancel()
		return server.Restart(ctx)
	}
	ctx, cancel := deadline(t, time.Minute)
	defer cancel()
	var hands sync.WaitGroup
	for range 2 {
		// The result of a restart depends on the other calls in between; the test checks that it
		// returns.
		hands.Go(func() { _ = restart() })
		hands.Go(func() {
			check.OK(t, server.Kill())
		})
		hands.Go(func() {
			check.OK(t, server.Stop(ctx))
		})
	}
	hands.Wait()
	check.Is(t, restart(), nil, "Restart() after it all; want it to work")
	for range 2 {
		hands.Go(func() { _ = restart() })
		hands.Go(func() {
			check.OK(t, server.Close())
		})
	}
	hands.Wait()
	pid := server.Pid()
	check.That(t, pid == 0, "process %d runs after Close", pid)
	check.Is(t, must.Err(os.Stat(server.Dir())), fs.ErrNotExist, "directory after Close; want it gone")
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
		check.That(t, strings.Contains(double.log, c.want) && (c.want == "") == (double.log == ""),
			"%s logs %q; want %q in it", c.name, double.log, c.want)
	}
}
