package zkproxy_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// Clients that connect again are served once all faults of their connections are over. They
// received everything in order, and nothing is left of the proxy (see TestMain).
func TestChaos(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	proxy := zkproxy.Run(t, server.Addr())
	stop := make(chan struct{})
	var workers sync.WaitGroup
	defer workers.Wait()
	defer close(stop)
	for i := range 4 {
		workers.Go(func() { work(t, proxy.Addr(), fmt.Sprintf("/chaos-%d", i), stop) })
	}
	actions := []fault.Action{
		fault.CutBefore, fault.DropReply, fault.HoldRequest, fault.HoldReply, fault.DelayReply, fault.DelayRequest,
	}
	for i := range 120 {
		rule := fault.Rule{Action: actions[i%len(actions)], Skip: i % 7}
		if rule.Action == fault.DelayReply || rule.Action == fault.DelayRequest {
			rule.Delay = time.Millisecond
		}
		h := proxy.Rules().Add(rule)
		stuck := false // the clients may not come to the rule
		switch i % 5 {
		case 1:
			proxy.Cut()
		case 2:
			proxy.Blackhole(zkproxy.ToClient)
			stuck = true
		case 3:
			proxy.Hang()
			stuck = true
		case 4:
			proxy.SetLatency(3 * time.Millisecond)
		}
		if stuck {
			select {
			case <-h.Hit():
			case <-time.After(quiet / 5):
			}
		} else {
			must.Receive(t, h.Hit(), "the hit of a rule")
		}
		proxy.Rules().Clear()
		proxy.SetLatency(0)
		proxy.Heal()
	}
	p := connect(t, proxy.Addr())
	p.wantReply(p.ask())
}

// work makes requests on one connection after the other until stop is closed and a last
// round has succeeded.
func work(t *testing.T, addr, node string, stop <-chan struct{}) {
	t.Helper()
	large := make([]byte, 3*zkproxy.Chunk)
	for {
		conn, err := net.DialTimeout("tcp", addr, soon)
		if err != nil {
			t.Errorf("dialling: %v", err)
			return
		}
		p := &peer{t: t, conn: conn.(*net.TCPConn)}
		_, _ = conn.Write(hello().Frame()) // if the connection ends, so will the next round
		_, _ = p.read(soon)
		for err == nil {
			err = p.round(node, large)
			select {
			case <-stop:
				if err == nil {
					_ = conn.Close() // nothing under way
					return
				}
			default:
			}
		}
		_ = conn.Close() // may be cut
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errDisorder) {
			t.Errorf("a round of requests: %v", err)
			return
		}
	}
}

var errDisorder = errors.New("replies are out of order")

// round sends three requests in one go and receives the replies.
func (p *peer) round(node string, data []byte) error {
	out := slices.Concat(createRequest(p.xid+1, node, data),
		request(p.xid+2, proto.OpGetData, node, false), request(p.xid+3, proto.OpDelete, node, int32(-1)))
	if _, err := p.conn.Write(out); err != nil {
		return err
	}
	for range 3 {
		p.xid++
		body, err := p.read(soon)
		if err != nil {
			return err
		}
		if xid := int32(binary.BigEndian.Uint32(body)); xid != p.xid {
			return errDisorder
		}
	}
	return nil
}
