package framework_test

import (
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// The tests of this file hold promised times to the letter, in virtual time.

func TestCloseTakesASecondAtTheMost(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(*zkserver.Server){
		"all is well":                   func(*zkserver.Server) {},
		"the server refuses":            func(s *zkserver.Server) { s.Refuse(); s.Cut() },
		"the server is frozen":          func(s *zkserver.Server) { s.Freeze() },
		"a reply is outstanding":        hold(fault.GetChildren),
		"a create is outstanding":       hold(fault.Create),
		"the close is not answered":     hold(fault.CloseSession),
		"a handshake is not answered":   func(s *zkserver.Server) { hold(fault.Connect)(s); s.Cut() },
		"nothing has been tried so far": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithSessionTimeout(30*time.Second))
				if trouble != nil {
					must.OK(t, c.AwaitConnected(t.Context()))
					mustHold(t, c)
					trouble(srv)
				}
				go func() { _, _, _ = c.Children(t.Context(), "/") }()
				go func() { _, _ = c.Create(t.Context(), "/x", nil, framework.Ephemeral()) }()
				<-time.After(time.Millisecond)
				closesInTime(t, c)
				srv.Rules().Clear()
				srv.Thaw()
			})
		})
	}
}

// hold withholds the replies to an operation.
func hold(op fault.Op) func(*zkserver.Server) {
	return func(s *zkserver.Server) {
		s.Rules().Add(fault.Rule{Op: op, Action: fault.HoldReply, Times: fault.Forever})
	}
}

// TestFrozenFrontEnd_costs_the_connect_timeout freezes the client's server, or the one that
// it goes to when its connection is cut.
func TestFrozenFrontEnd_costs_the_connect_timeout(t *testing.T) {
	t.Parallel()
	const connectTimeout = time.Second
	for name, trouble := range map[string]func(srv *zkserver.Server, current, next *zkserver.Frontend){
		"the client's own": func(_ *zkserver.Server, current, _ *zkserver.Frontend) { current.Freeze() },
		"the next, when the connection is cut": func(srv *zkserver.Server, _, next *zkserver.Frontend) {
			next.Freeze()
			srv.Cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				order := srv.Frontends()
				d := frontDialer{srv: srv, order: order}
				c := connect(t, srv.Addr(), framework.WithDialer(d.dial), framework.WithConnectTimeout(connectTimeout))
				id, held := c.Session().ID, mustHold(t, c)
				trouble(srv, order[0], order[1])
				start := time.Now()
				must.Get2(c.Children(t.Context(), "/"))(t)
				if took := time.Since(start); took > connectTimeout+time.Second {
					t.Errorf("usable again after %v, want at most the connect timeout (%v) and a second", took, connectTimeout)
				}
				if err := held.Err(); err != nil || c.Session().ID != id {
					t.Errorf("session %#x, hold %v: want to keep session %#x", c.Session().ID, err, id)
				}
				srv.Thaw()
			}, zkserver.WithFrontends(3))
		})
	}
}
