package interop_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/lab/peers"
	"github.com/docent-go/docent/testing/zktest"
)

// A library is another implementation of locks. Its tests share one driver, which
// the first one starts and TestMain ends.
type library struct {
	name   string
	locate func() (command []string, err error) // looks once

	mu      sync.Mutex // guards following; held while the driver starts: all others want it too
	driver  *driver
	failure error // of the first start that failed; not tried again
	skipped int   // tests, for want of it
}

var (
	curator = &library{name: "Curator", locate: sync.OnceValues(locateCurator)}
	kazoo   = &library{name: "kazoo", locate: sync.OnceValues(locateKazoo)}

	curatorDiscovery = &library{name: "Curator's x-discovery", locate: sync.OnceValues(locateDiscovery)}
)

// shared returns the driver that all tests of the library use, and that no test breaks. Without
// ZooKeeper or the library the test is skipped, or fails, as ZK_TEST says.
func (l *library) shared(t testing.TB) *driver {
	t.Helper()
	l.require(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.driver == nil && l.failure == nil {
		l.driver, l.failure = l.start()
	}
	if l.failure != nil {
		t.Fatal(l.failure)
	}
	return l.driver
}

// own returns a driver for this test alone, to be broken.
func (l *library) own(t testing.TB) *driver {
	t.Helper()
	l.require(t)
	d := must.Get(l.start())(t)
	t.Cleanup(func() {
		if err := d.end(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (l *library) start() (*driver, error) {
	command, err := l.locate()
	if err != nil {
		return nil, err
	}
	d, err := startDriver(command)
	if err != nil {
		return nil, fmt.Errorf("driver of %s: %w", l.name, err)
	}
	if err := d.awaitReady(); err != nil {
		return nil, errors.Join(fmt.Errorf("driver of %s: %w", l.name, err), d.end())
	}
	return d, nil
}

func (l *library) require(t testing.TB) {
	t.Helper()
	zktest.Shared(t) // for its rules about a missing server
	_, err := l.locate()
	if err == nil {
		return
	}
	if !errors.Is(err, peers.ErrMissing) || os.Getenv("ZK_TEST") == "required" {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.skipped++
	l.mu.Unlock()
	t.Skipf("SKIPPED, NOT TESTED: %v", err)
}

// finish ends the shared driver, and writes the line that keeps skipped tests from
// being taken for passed ones.
func (l *library) finish() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.skipped > 0 {
		fmt.Fprintf(os.Stderr, "interop: SKIPPED %d tests for want of %s\n", l.skipped, l.name)
	}
	if l.driver == nil {
		return nil
	}
	return l.driver.end()
}

// A suite is a package's tests with the drivers that they share.
type suite struct{ m *testing.M }

func (s suite) Run() int {
	code := s.m.Run()
	if err := errors.Join(curator.finish(), curatorDiscovery.finish(), kazoo.finish()); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		return max(code, 1)
	}
	return code
}

func TestMain(m *testing.M) { zktest.Main(suite{m}, zktest.WithLeakCheck()) }

// locateCurator returns the command of Curator's driver.
func locateCurator() ([]string, error) { return locateJava("CuratorDriver.java", peers.Curator) }

// locateDiscovery returns the command of the driver of Curator's x-discovery.
func locateDiscovery() ([]string, error) {
	return locateJava("DiscoveryDriver.java", peers.CuratorDiscovery)
}

// locateJava returns the command of a driver, which runs from its source with the jars.
func locateJava(source string, jars func() ([]string, error)) ([]string, error) {
	java, _, err := peers.Java()
	if err != nil {
		return nil, err
	}
	path, err := jars()
	if err != nil {
		return nil, err
	}
	return []string{
		java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData",
		"-Djava.net.preferIPv4Stack=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=ERROR",
		"-cp", strings.Join(path, string(os.PathListSeparator)),
		filepath.Join("java", source),
	}, nil
}

// locateKazoo returns the command of kazoo's driver.
func locateKazoo() ([]string, error) {
	python, err := peers.Kazoo(context.Background())
	if err != nil {
		return nil, err
	}
	return []string{python, filepath.Join("python", "kazoo_driver.py")}, nil
}
