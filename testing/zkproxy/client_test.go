package zkproxy_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// quietLogger keeps the client's log out of the test's.
type quietLogger struct{}

func (quietLogger) Printf(string, ...any) {}

// client connects a client of the common library, and returns when it has a session.
func client(t *testing.T, addr string, timeout time.Duration) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	conn, events := must.Get2(zk.Connect([]string{addr}, timeout, zk.WithLogger(quietLogger{})))(t)
	t.Cleanup(conn.Close)
	wantState(t, events, zk.StateHasSession)
	return conn, events
}

// wantState waits for a state and returns when it came.
func wantState(t *testing.T, events <-chan zk.Event, want zk.State) time.Time {
	t.Helper()
	deadline := time.After(soon)
	for {
		select {
		case event := <-events:
			if event.State == want {
				return time.Now()
			}
		case <-deadline:
			t.Fatalf("state %v didn't come", want)
		}
	}
}

func TestClientWatchesThroughFaults(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	conn, events := client(t, proxy.Addr(), session)
	direct, _ := client(t, zktest.Shared(t).Addr(), session)
	node := newNode()
	_, _, watch, err := conn.ExistsW(node)
	if err != nil {
		t.Fatal(err)
	}
	held := proxy.Rules().Add(fault.Rule{Op: fault.Event, Path: node, Action: fault.HoldReply})
	must.Get(direct.Create(node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)))(t)
	wantHit(t, held.Hit())
	select {
	case event := <-watch:
		t.Errorf("event %v before Release", event)
	default:
	}
	// The event was under way and is lost; the watch is set again and fires.
	proxy.Cut()
	wantState(t, events, zk.StateHasSession)
	if event := must.Receive(t, watch, "the event"); event.Type != zk.EventNodeCreated {
		t.Errorf("event %v; want EventNodeCreated", event)
	}
	if proxy.Count(fault.SetWatches) != 1 {
		t.Errorf("%d setWatches; want 1", proxy.Count(fault.SetWatches))
	}
}
