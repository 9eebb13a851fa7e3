package framework_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// getData is the opcode that leavesOut's server does not answer.
const getData = 4

// leavesOut returns a server that answers everything but reads of data.
func leavesOut() *rawServer {
	return &rawServer{frames: func(_, opcode int32) []byte {
		if opcode == getData {
			return []byte{}
		}
		return nil
	}}
}

// Calls whose context ends leave their requests behind. These end, too, although the server answers
// pings for ever.
func TestARequestThatTheServerLeavesOutEnds(t *testing.T) {
	const calls = 500
	synctest.Test(t, func(t *testing.T) {
		srv := leavesOut()
		c := raw(t, srv)
		must.OK(t, c.AwaitConnected(t.Context()))
		before := runtime.NumGoroutine()
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, _, err := c.Get(ctx, "/left-out")
				wantErr(t, "Get", err, context.DeadlineExceeded)
			})
		}
		wg.Wait()
		<-time.After(3 * c.Session().Timeout)
		synctest.Wait()
		if left := runtime.NumGoroutine() - before; left > 5 {
			t.Errorf("%d goroutines are left of %d calls", left, calls)
		}
		if n := srv.connections(); n < 2 || n > 4 {
			t.Errorf("%d connections, want that the first was closed", n)
		}
		must.Get2(c.Exists(t.Context(), "/"))(t)
	})
}

// A server that is slow, and replies in order, keeps its connection.
func TestAServerThatRepliesLateKeepsItsConnection(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv, framework.WithRetry(retry.Never()))
		timeout := c.Session().Timeout
		for range 10 {
			srv.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.DelayReply, Delay: timeout / 2})
			must.Get2(c.Get(t.Context(), "/"))(t)
		}
	})
}

// Each of many servers is broken in the same way; closing the clients leaves nothing of them.
func TestBrokenServersLeaveNothing(t *testing.T) {
	const servers = 500
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	synctest.Test(t, func(t *testing.T) {
		for range servers {
			srv := leavesOut()
			c := must.Get(framework.NewClient("raw.test", framework.WithDialer(srv.dial), framework.WithSessionTimeout(4*time.Second)))(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, _, err := c.Get(ctx, "/left-out")
			wantErr(t, "Get", err, context.DeadlineExceeded)
			cancel()
			_ = c.Close() // the session can't be closed in order
			srv.close()
		}
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("after %d servers: %d goroutines (%d before), heap grown by %d bytes", servers, runtime.NumGoroutine(), goroutines, grown)
	if n := runtime.NumGoroutine(); n > goroutines+2 {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if grown > servers*2<<10 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
}

// WhenOver's function may close the client, wherever the deletion ends.
func TestWhenOverMayCloseTheClient(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, srv *zkserver.Server, c *framework.Client, over func(bool)){
		"Delete": func(t *testing.T, _ *zkserver.Server, c *framework.Client, over func(bool)) {
			must.OK(t, c.Delete(t.Context(), "/node", framework.WhenOver(over)))
		},
		"Discard": func(_ *testing.T, _ *zkserver.Server, c *framework.Client, over func(bool)) {
			c.Discard("/node", framework.WhenOver(over))
		},
		"Discard that Close ends": func(_ *testing.T, srv *zkserver.Server, c *framework.Client, over func(bool)) {
			srv.Rules().Add(fault.Rule{Op: fault.Exists, Action: fault.HoldRequest})
			c.Discard("/node", framework.WhenOver(over))
			synctest.Wait()
			_ = c.Close() // reports that the deletion is not done
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				c := virtual(t, srv)
				mustCreate(t, c, "/node", "")
				closed := make(chan error, 1)
				end(t, srv, c, func(bool) { closed <- c.Close() })
				select {
				case <-closed:
				case <-time.After(time.Minute):
					t.Fatal(fmt.Errorf("WhenOver's function is blocked in Close"))
				}
			})
		})
	}
}
