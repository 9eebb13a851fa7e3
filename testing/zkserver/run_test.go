package zkserver_test

import (
	"runtime"
	"testing"

	"github.com/docent-go/docent/internal/must"
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
