package framework_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestVersionCheck_logs_the_version_and_its_faults(t *testing.T) {
	t.Parallel()
	for version, faults := range map[string][]string{
		"3.8.0": {"ZOOKEEPER-1675", "ZOOKEEPER-4537", "ZOOKEEPER-4466", "ZOOKEEPER-2623", "CVE-2024-23944"},
		"3.9.6": {"ZOOKEEPER-1675"},
	} {
		runVirtually(t, version, func(t *testing.T, srv *zkserver.Server) {
			core, logs := observer.New(zap.InfoLevel)
			c := virtual(t, srv, framework.WithLogger(zap.New(core)), framework.WithVersionCheck())
			synctest.Wait()
			srv.Cut() // the next connection asks no more
			synctest.Wait()
			must.OK(t, c.AwaitConnected(t.Context()))
			synctest.Wait()
			lines := logs.FilterMessage("the server's version").All()
			if len(lines) != 1 {
				t.Fatalf("lines %v, want one", logs.All())
			}
			fields := lines[0].ContextMap()
			if got, _ := fields["zookeeper.server.version"].(string); !strings.HasPrefix(got, version+"-") {
				t.Errorf("version %q, want %s-…", got, version)
			}
			named, _ := fields["zookeeper.server.faults"].([]any)
			if len(named) != len(faults) {
				t.Fatalf("faults %v, want %v", named, faults)
			}
			for i, want := range faults {
				if got, _ := named[i].(string); !strings.HasPrefix(got, want+": ") {
					t.Errorf("fault %q, want %s", got, want)
				}
			}
		}, zkserver.WithVersion(version))
	}
}

// askedLater dials srv at first, and then a server that answers a version check as given.
func askedLater(srv *zkserver.Server, dials *atomic.Int32, answer func(net.Conn)) framework.Option {
	return framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials.Add(1) == 1 {
			return srv.Dial(ctx, network, addr)
		}
		ours, theirs := net.Pipe()
		go answer(theirs) // ends with the connection
		return ours, nil
	})
}

// question reads what the client asks.
func question(conn net.Conn) { _, _ = io.ReadFull(conn, make([]byte, len("srvr"))) }

// A server may leave srvr out, and a proxy may neither answer nor close.
func TestVersionCheck_without_an_answer(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(net.Conn){
		"not in the whitelist": func(conn net.Conn) {
			question(conn)
			_, _ = io.WriteString(conn, "srvr is not executed because it is not in the whitelist.\n")
			_ = conn.Close()
		},
		"silence": question,
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			core, logs := observer.New(zap.InfoLevel)
			c := connect(t, srv.Addr(), askedLater(srv, new(atomic.Int32), answer), framework.WithLogger(zap.New(core)), framework.WithVersionCheck())
			<-time.After(c.ConnectTimeout() + time.Second)
			wantEqual(t, "lines of an unknown version", logs.FilterMessage("the server's version is not known").Len(), 1)
		})
	}
}

func TestVersionCheck_ends_with_the_client(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var dials atomic.Int32
		core, logs := observer.New(zap.InfoLevel)
		c := connect(t, srv.Addr(), askedLater(srv, &dials, func(net.Conn) {}), framework.WithLogger(zap.New(core)), framework.WithVersionCheck())
		synctest.Wait()
		start := time.Now()
		must.OK(t, c.Close())
		wantWithin(t, start, time.Second)
		if dials.Load() != 2 || logs.FilterMessageSnippet("version").Len() != 0 {
			t.Errorf("%d dials, lines %v: want 2, and no line about the version", dials.Load(), logs.All())
		}
	})
}
