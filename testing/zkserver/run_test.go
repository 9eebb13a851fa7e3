package zkserver_test

import (
	"runtime"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

func TestRun(t *testing.T) {
	t.Parallel()
	t.Run("closes the server when the test has ended", func(t *testing.T) {
		t.Parallel()
		var srv *zkserver.Server
		t.Run("test", func(t *testing.T) { srv = zkserver.Run(t) })
		if conn, err := srv.Dial(t.Context(), "tcp", srv.Addr()); err == nil {
			conn.Close()
			t.Error("the server accepts connections after its test")
		}
	})
	virtualSubtest(t, "closes the server within a bubble", func(t *testing.T, srv *zkserver.Server) {
		conn := must.Get(srv.Dial(t.Context(), "tcp", srv.Frontend(2).Addr()))(t)
		t.Cleanup(func() { conn.Close() })
	}, zkserver.WithFrontends(3))
	t.Run("fails the test if an option is out of bounds", func(t *testing.T) {
		t.Parallel()
		failing := &failingTest{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			zkserver.Run(failing, zkserver.WithFrontends(0))
		}()
		<-done
		if want := "zkserver: frontends 0: must be 1 to 100"; failing.fault == nil || failing.fault.Error() != want {
			t.Errorf("the test failed with %v, want %s", failing.fault, want)
		}
	})
}

// A failingTest records what it fails with, and ends its goroutine, as a test does.
type failingTest struct {
	testing.TB
	fault error
}

func (f *failingTest) Helper() {}

func (f *failingTest) Fatal(args ...any) {
	f.fault, _ = args[0].(error)
	runtime.Goexit()
}

// A follower alone answers a request that it refuses: behind what came before, with its
// own zxid where a real server gives that, and the leader sees nothing of it.
func TestFaultRefuseIsAnsweredByTheFollowerAlone(t *testing.T) {
	t.Parallel()
	credential := []any{0, "digest", []byte("ann:pw")}
	node := []any{"/refused", []byte(nil), open(), 0}
	for _, tt := range []struct {
		code   fault.Code
		op     int32
		fields []any
	}{
		{fault.Throttled, create, node},
		{fault.Throttled, getChildren, []any{"/", false}},
		{fault.NotReadOnly, create, node},
		{fault.NoAuth, create, node},
		{fault.InvalidACL, create, node},
		{fault.AuthFailed, auth, credential},
		{fault.AuthRequired, create, node},
		{fault.Unimplemented, create, node},
	} {
		virtualSubtest(t, tt.code.String(), func(t *testing.T, srv *zkserver.Server) {
			other, c := connectTo(t, srv, 2), connectTo(t, srv, 0)
			refused := srv.Rules().Add(fault.Rule{Op: fault.OpOf(tt.op), Path: pathOf(tt.fields), Action: fault.Refuse, Code: tt.code})
			before, _ := c.send(create, "/before", []byte(nil), open(), 0)
			xid, _ := c.send(tt.op, tt.fields...)
			first, err := c.receive()
			if err != nil || first.xid != before || first.err != 0 {
				t.Fatalf("the answer before: %+v, %v", first, err)
			}
			got, err := c.receive()
			if want := tt.code.Zxid(first.zxid); err != nil || got.xid != xid || got.err != int32(tt.code) || got.zxid != want || len(got.body) != 0 {
				t.Errorf("got %+v, %v; want xid %d, error %d, zxid %d", got, err, xid, tt.code, want)
			}
			<-refused.Hit()
			if srv.Leader().Zxid() != first.zxid || other.has(t, "/refused") {
				t.Error("the leader has seen the request")
			}
			if tt.code.Closes() {
				c.closed(t)
			} else if got := c.call(t, tt.op, tt.fields...); got.err != 0 {
				t.Errorf("the next request: error %d", got.err)
			}
		}, zkserver.WithFrontends(3), zkserver.WithLeader(2))
	}
}

// pathOf returns the path that a request with these fields carries, or "".
func pathOf(fields []any) string {
	path, _ := fields[0].(string)
	return path
}

// A member that has no contact with its leader refuses too.
func TestFaultRefuseNeedsNoLeader(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := connectTo(t, srv, 0)
		srv.Frontend(0).Isolate()
		srv.Rules().Add(fault.Rule{Action: fault.Refuse, Code: fault.Throttled, Times: 2})
		c.fails(t, -127, del, "/none", -1)
		c.fails(t, -127, multi, []sub{{check, body("/none", 0)}})
	}, zkserver.WithFrontends(3), zkserver.WithLeader(2))
}
