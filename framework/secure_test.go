package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestSecureWaitsAsLongAsTheSessionCanBeValid asks for a proof when the certain deadline has
// passed and the session is presumed to be valid. There is no connection for longer than an
// operation waits for one.
func TestSecureWaitsAsLongAsTheSessionCanBeValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const session, margin = 40 * time.Second, 20 * time.Second // far apart: the deadline and what is presumed
		srv := zkserver.Run(t)
		c := connect(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(session),
			framework.WithLeaseMargin(margin), framework.WithConnectTimeout(time.Second))
		defer c.Close()
		time.Sleep(session) //nolint:forbidigo // virtual: the handshake is old by then
		h := must.Get(c.HoldSession(t.Context()))(t)
		defer h.Release()
		time.Sleep(time.Second) //nolint:forbidigo // virtual: the heartbeat has been answered
		srv.Refuse()
		srv.Cut()
		time.Sleep(time.Until(h.Deadline())) //nolint:forbidigo // virtual
		if err := h.Err(); err != nil {
			t.Fatalf("given up while it may stand: %v", err)
		}
		secured := make(chan error, 1)
		go func() { secured <- h.Secure(t.Context()) }()
		time.Sleep(3 * time.Second) //nolint:forbidigo // virtual: longer than the connect timeout
		synctest.Wait()
		select {
		case err := <-secured:
			t.Fatalf("gave up for lack of a connection: %v", err)
		default:
		}
		srv.Accept()
		if err := <-secured; err != nil {
			t.Error(err)
		}
	})
}

// TestALeaseMarginThatDoesNotFitIsCutAndLogged has a server that grants a shorter session timeout than
// the margin.
func TestALeaseMarginThatDoesNotFitIsCutAndLogged(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		core, logs := observer.New(zap.ErrorLevel)
		c := virtual(t, srv, framework.WithSessionTimeout(time.Minute), framework.WithLeaseMargin(10*time.Second), framework.WithLogger(zap.New(core)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		h := must.Get(c.HoldSession(ctx))(t)
		for range 3 {
			srv.Cut()
			sleep(20 * time.Second)
		}
		if err := h.Secure(ctx); err != nil {
			t.Errorf("a healthy session can't be secured: %v", err)
		}
		sleep(time.Minute)
		if err := h.Err(); err != nil {
			t.Errorf("lost: %v", err)
		}
		const message = "lease margin is more than half the session timeout that the server granted"
		if n := logs.FilterMessage(message).Len(); n != 1 {
			t.Errorf("logged %d times, want once a session", n)
		}
	}, zkserver.WithSessionTimeouts(time.Second, 6*time.Second))
}
