package framework_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/zkserver"
)

// A slowConn sends a megabyte a second.
type slowConn struct {
	net.Conn
	mu sync.Mutex
	by time.Time
}

func (c *slowConn) SetDeadline(at time.Time) error {
	_ = c.SetWriteDeadline(at)
	return c.Conn.SetReadDeadline(at)
}

func (c *slowConn) SetWriteDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by = at
	return nil
}

func (c *slowConn) Write(p []byte) (n int, err error) {
	for n < len(p) {
		c.mu.Lock()
		by := c.by
		c.mu.Unlock()
		if !by.IsZero() && time.Now().After(by) {
			return n, os.ErrDeadlineExceeded
		}
		piece := p[n:min(n+4<<10, len(p))]
		<-time.After(time.Duration(len(piece)) * time.Microsecond)
		m, err := c.Conn.Write(piece)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// Several large requests take longer than one write may take. Neither the connection nor a lease is lost.
func TestWritesOverASlowLink(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var states trail
		c := connect(t, srv.Addr(), framework.WithStateListener(states.add),
			framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := srv.Dial(ctx, network, addr)
				return &slowConn{Conn: conn}, err
			}))
		mustCreate(t, c, "/d", "")
		h := mustHold(t, c)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if _, err := c.Set(t.Context(), "/d", make([]byte, 500<<10), framework.AnyVersion); err != nil {
					t.Errorf("%.200v", err)
				}
			})
		}
		wg.Wait()
		wantErr(t, "the lease was lost although the server replied all the time", h.Err(), nil)
		if got := states.states(); len(got) > 2 {
			t.Errorf("states %v: the connection broke", got)
		}
	})
}

// A client that is moved from server to server finishes its calls first.
func TestAMoveFailsNoCall(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv, framework.WithRetry(retry.Never()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var failed, calls atomic.Int64
		var first atomic.Value
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					p := fmt.Sprintf("/d%d-%d/x/y", g, i)
					_, err := c.Create(ctx, p, nil, framework.WithParents())
					if calls.Add(1); err != nil && ctx.Err() == nil {
						failed.Add(1)
						first.CompareAndSwap(nil, err.Error())
					}
					<-time.After(time.Millisecond)
				}
			})
		}
		for i := range 100 {
			_ = c.SetServers(srv.Frontend(i % 2).Addr())
			<-time.After(100 * time.Millisecond)
		}
		cancel()
		wg.Wait()
		if failed.Load() > 0 {
			t.Errorf("%d of %d calls failed by planned moves, the first with %v", failed.Load(), calls.Load(), first.Load())
		}
	}, zkserver.WithFrontends(2), zkserver.WithCommitTime(2*time.Millisecond))
}

// The ACL of a parent makes a request longer than servers accept.
func TestAParentsLargeACLIsRefusedBeforeItIsSent(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv, framework.WithRetry(retry.Times(3, time.Millisecond)), framework.WithMaxPacket(16<<10, 64<<10),
			framework.WithACLProvider(func(path string) []acl.Entry {
				if strings.HasSuffix(path, "/parent") {
					return []acl.Entry{{Perms: acl.All, Scheme: "digest", ID: strings.Repeat("x", 20<<10)}}
				}
				return nil
			}))
		_, err := c.Create(t.Context(), "/parent/child", nil, framework.WithParents())
		if !errors.Is(err, framework.ErrTooLarge) {
			t.Errorf("not ErrTooLarge: %.200v", err)
		}
	}, zkserver.WithPacketLimit(18<<10))
}
