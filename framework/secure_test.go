package framework_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestSecureWaitsAsLongAsTheSessionCanStand asks for a proof when the certain deadline
// has passed, the session is presumed to stand, and there is no connection for
// longer than an operation waits for one.
func TestSecureWaitsAsLongAsTheSessionCanStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const session, margin = 40 * time.Second, 20 * time.Second // far apart: the deadline and what is presumed
		srv, err := zkserver.Start()
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		c := connect(t, srv.ConnectString(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(session),
			framework.WithLeaseMargin(margin), framework.WithConnectTimeout(time.Second))
		defer c.Close()
		time.Sleep(session) //nolint:forbidigo // virtual: the handshake is old by then
		h, err := c.HoldSession(t.Context())
		if err != nil {
			t.Fatal(err)
		}
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
