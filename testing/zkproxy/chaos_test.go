package zkproxy_test

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

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
	for range 4 {
		node := newNode()
		workers.Go(func() { work(t, proxy.Addr(), node, stop) })
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
			wantHit(t, h.Hit())
		}
		proxy.Rules().Clear()
		proxy.SetLatency(0)
		proxy.Heal()
	}
	connect(t, proxy.Addr()).exists("/")
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
		p := &peer{t: t, conn: conn.(*net.TCPConn), password: make([]byte, 16)}
		p.greet()
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

// greet sends a handshake and receives the answer. If the connection ends, so will the
// next round.
func (p *peer) greet() {
	_, _ = p.conn.Write(p.handshake())
	_, _ = p.read(soon)
}

// round sends three requests in one go and receives the replies.
func (p *peer) round(node string, data []byte) error {
	var out []byte
	request := func(opcode proto.Opcode, body packet) {
		p.xid++
		out = append(out, proto.RequestFrame(p.xid, opcode, body)...)
	}
	request(proto.OpCreate, packet{}.create(proto.OpCreate, node, data))
	request(proto.OpGetData, packet{}.string(node).bool(false))
	request(proto.OpDelete, packet{}.string(node).int32(-1))
	if _, err := p.conn.Write(out); err != nil {
		return err
	}
	for i := range int32(3) {
		body, err := p.read(soon)
		if err != nil {
			return err
		}
		if xid := int32(binary.BigEndian.Uint32(body)); xid != p.xid-2+i {
			return errDisorder
		}
	}
	return nil
}
