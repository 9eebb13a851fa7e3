package zktest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

func TestBadOptionsAreRefusedTogether(t *testing.T) {
	t.Parallel()
	_, err := zktest.StartEnsemble(t.Context(), 2,
		zktest.WithTickTime(time.Microsecond),
		zktest.WithSessionTimeouts(2*time.Second, time.Second),
		zktest.WithSyncLimit(0),
		zktest.WithContainerInterval(-time.Second),
		zktest.WithLogLevel("loud"),
		zktest.WithSetting("a\nb", "c"),
		zktest.WithSequence("a//b", 0),
		zktest.WithObservers(-1),
		zktest.WithObserverMasters(),
	)
	want := `zktest: ensemble of 2 and -1 observers: must have 3 to 7 members
zktest: tick time 1µs: must be at least 1ms
zktest: greatest session timeout 1s: must be at least the least one, 2s
zktest: sync limit 0: must be at least 1 tick
zktest: container interval -1s: must be at least 1ms
zktest: log level "loud": must be DEBUG, INFO, WARN or ERROR
zktest: setting "a\nb" with value "c": must be one line key=value
zktest: observers -1: must not be negative
zktest: observer masters: need WithNamespaces, because all listen at one port
zktest: sequence of "a//b" from 0: must be of a full path and from at least 1`
	if err == nil || err.Error() != want {
		t.Errorf("StartEnsemble() =\n%v\nwant\n%s", err, want)
	}
	if _, err := zktest.Start(t.Context(), nil); err == nil {
		t.Error("Start() with a nil option: want an error")
	}
}

func TestOptionsReachTheServer(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t,
		zktest.WithTickTime(100*time.Millisecond),
		zktest.WithSessionTimeouts(300*time.Millisecond, 5*time.Second),
		zktest.WithSetting("maxClientCnxns", "7"),
		zktest.WithJVMFlags("-Dzktest.flag=passed"),
		zktest.WithFsync(),
		zktest.WithLogLevel("INFO"),
	)
	for word, want := range map[string][]string{
		"conf": {"tickTime=100\n", "minSessionTimeout=300\n", "maxSessionTimeout=5000\n", "maxClientCnxns=7\n"},
		"envi": {"java.version="},
	} {
		answer := must.Get(server.FourLetter(t.Context(), word))(t)
		for _, line := range want {
			if !strings.Contains(answer, line) {
				t.Errorf("%s without %q:\n%s", word, line, answer)
			}
		}
	}
}

func TestContainersAndTTLNodesGo(t *testing.T) {
	t.Parallel()
	conn := connect(t, zktest.Shared(t))
	acl := zk.WorldACL(zk.PermAll)
	must.Get(conn.CreateContainer("/container", nil, zk.FlagContainer, acl))(t)
	must.Get(conn.CreateTTL("/ttl", nil, zk.FlagTTL, acl, 100*time.Millisecond))(t)
	create(t, conn, "/container/child", 0)
	must.OK(t, conn.Delete("/container/child", -1))
	for _, path := range []string{"/container", "/ttl"} {
		zktest.Eventually(t, soon, path+" is gone", func() bool {
			ok, _, err := conn.Exists(path)
			return err == nil && !ok
		})
	}
}

func TestStartObeysItsContext(t *testing.T) {
	t.Parallel()
	zktest.Shared(t)
	gone := errors.New("caller is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := zktest.Start(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, gone) {
		t.Errorf("Start() = %v; want the context's error and its cause", err)
	}
	short := deadline(t, 50*time.Millisecond) // a JVM needs longer
	if _, err := zktest.StartEnsemble(short, 3); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("StartEnsemble() = %v; want the context's error", err)
	}
}

func TestSequenceBeginsWhereItIsWanted(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t, zktest.WithSequence("/a/end", 2147483647), zktest.WithSequence("/a/b", 41))
	conn := connect(t, server)
	for path, want := range map[string]string{"/a/end": "/a/end/n2147483647", "/a/b": "/a/b/n0000000041"} {
		children, _, err := conn.Children(path)
		if err != nil || len(children) != 0 {
			t.Errorf("children of %s: %v, %v; want none", path, children, err)
		}
		got, err := conn.Create(path+"/n", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil || got != want {
			t.Errorf("created %s, %v; want %s", got, err, want)
		}
	}
}
