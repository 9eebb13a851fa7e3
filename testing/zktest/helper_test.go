package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

func deadline(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// alive reports whether a process runs. One that has ended and that its parent,
// or whoever inherited it, has not asked for yet does not.
func alive(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil || process.Signal(syscall.Signal(0)) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) || noProc()
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

// noProc reports whether the system does without /proc.
func noProc() bool {
	_, err := os.Stat("/proc/self/stat")
	return err != nil
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// connect returns a client of one server, or of a proxy, whose session has begun and lives long.
func connect(t testing.TB, server interface{ Addr() string }) *zk.Conn {
	t.Helper()
	conn, events := must.Get2(zk.Connect([]string{server.Addr()}, 20*time.Second, zk.WithLogger(quiet{})))(t)
	t.Cleanup(conn.Close)
	limit := time.After(soon)
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn
			}
		case <-limit:
			t.Fatalf("no session with %s within %v", server.Addr(), soon)
		}
	}
}

func create(t testing.TB, conn *zk.Conn, path string, flags int32) {
	t.Helper()
	if _, err := conn.Create(path, nil, flags, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
}

// needNamespaces skips the test, or fails it on a build server that has privileges,
// where there are none.
func needNamespaces(t testing.TB) {
	t.Helper()
	err := zktest.Namespaces()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true" && os.Geteuid() == 0:
		t.Fatal(err)
	default:
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
}
