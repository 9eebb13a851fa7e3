package zkproxy_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// A scene is a proxy before the shared server, a client of the proxy, and another that
// sees the server as it is.
type scene struct {
	proxy  *zkproxy.Proxy
	client *peer
	direct *peer
	node   string
}

func newScene(t *testing.T) *scene {
	t.Helper()
	server := zktest.Shared(t)
	proxy := zkproxy.Run(t, server.Addr())
	return &scene{
		proxy:  proxy,
		client: connect(t, proxy.Addr()),
		direct: connect(t, server.Addr()),
		node:   newNode(),
	}
}

func (s *scene) create(path string) packet { return packet{}.create(proto.OpCreate, path, nil) }

// The outcome of a create, and the request behind it, while a rule is in force and afterwards.
func TestFaultOfARequest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		action  fault.Action
		delay   time.Duration
		applied bool // once the rule has hit
		ends    bool // the connection
	}{
		{fault.CutBefore, 0, false, true},
		{fault.DropReply, 0, true, true},
		{fault.HoldRequest, 0, false, false},
		{fault.HoldReply, 0, true, false},
		{fault.DelayRequest, time.Hour, false, false},
		{fault.DelayReply, time.Hour, true, false},
	} {
		t.Run(tt.action.String(), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			hit := s.proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: s.node, Action: tt.action, Delay: tt.delay})
			var before, after []int32
			if !tt.ends {
				before = append(before, s.client.ask("/"))
			}
			create := s.client.send(proto.OpCreate, s.create(s.node))
			if !tt.ends {
				after = append(after, s.client.ask("/"))
			}
			s.client.wantReplies(before...)
			wantHit(t, hit.Hit())
			if got := s.direct.exists(s.node); got != tt.applied {
				t.Errorf("the create has been applied when the rule has hit: %v; want %v", got, tt.applied)
			}
			if tt.ends {
				s.client.wantEnd()
				if r := connect(t, s.proxy.Addr()).call(proto.OpCreate, s.create(s.node)); (r.Code == proto.CodeOK) == tt.applied {
					t.Errorf("the retried create has code %d", r.Code)
				}
				if hit.Hits() != 1 {
					t.Errorf("Hits() = %d; want 1, the retry goes through", hit.Hits())
				}
				return
			}
			s.client.wantSilence()
			hit.Release()
			s.client.wantReplies(create)
			s.client.wantReplies(after...)
			if !s.direct.exists(s.node) {
				t.Error("the create has not been applied after Release")
			}
		})
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	const delay = time.Second
	for _, action := range []fault.Action{fault.DelayRequest, fault.DelayReply} {
		t.Run(action.String(), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.proxy.Rules().Add(fault.Rule{Op: fault.Create, Action: action, Delay: delay, Times: 2})
			start := time.Now()
			first := s.client.send(proto.OpCreate, s.create(s.node))
			second := s.client.send(proto.OpCreate, s.create(newNode()))
			s.client.wantReplies(first)
			between := time.Now()
			if took := between.Sub(start); took < delay {
				t.Errorf("the reply came after %v; want %v at least", took, delay)
			}
			s.client.wantReplies(second)
			if apart := time.Since(between); apart >= delay {
				t.Errorf("two replies that arrived together came %v apart", apart)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	// watched returns a scene in which the client has a watch on the node, and the
	// node has changed since the rule was added.
	watched := func(t *testing.T, rule fault.Rule) (*scene, *fault.Handle) {
		s := newScene(t)
		s.direct.must(proto.OpCreate, s.create(s.node))
		s.client.must(proto.OpExists, packet{}.string(s.node).bool(true))
		rule.Op, rule.Path = fault.Event, s.node
		h := s.proxy.Rules().Add(rule)
		s.direct.must(proto.OpSetData, packet{}.string(s.node).string("new").int32(-1))
		wantHit(t, h.Hit())
		return s, h
	}
	get := func(s *scene) int32 { return s.client.send(proto.OpGetData, packet{}.string(s.node).bool(false)) }

	t.Run("HoldReply keeps what follows the event behind it", func(t *testing.T) {
		t.Parallel()
		s, held := watched(t, fault.Rule{Action: fault.HoldReply})
		xid := get(s)
		s.client.wantSilence()
		held.Release()
		s.client.wantReplies(proto.XidEvent, xid)
	})
	t.Run("DelayReply delays the event", func(t *testing.T) {
		t.Parallel()
		const delay = 200 * time.Millisecond
		start := time.Now()
		s, _ := watched(t, fault.Rule{Action: fault.DelayReply, Delay: delay})
		s.client.wantReplies(proto.XidEvent)
		if took := time.Since(start); took < delay {
			t.Errorf("the event came after %v; want %v at least", took, delay)
		}
	})
	t.Run("DropEvent loses the event and nothing else", func(t *testing.T) {
		t.Parallel()
		s, _ := watched(t, fault.Rule{Action: fault.DropEvent})
		s.client.wantReplies(get(s))
	})
	t.Run("DropEvent leaves the end of the connection", func(t *testing.T) {
		t.Parallel()
		s, _ := watched(t, fault.Rule{Action: fault.DropEvent})
		must.OK(t, zktest.KillSession(t.Context(), zktest.Shared(t).Addr(), s.client.id, s.client.password))
		s.client.wantEnd()
	})
	t.Run("CutBefore cuts before the event", func(t *testing.T) {
		t.Parallel()
		s, _ := watched(t, fault.Rule{Action: fault.CutBefore})
		s.client.wantEnd()
	})
	t.Run("Pass lets it through", func(t *testing.T) {
		t.Parallel()
		s, _ := watched(t, fault.Rule{Action: fault.Pass})
		s.client.wantReplies(proto.XidEvent)
	})
}

func TestRequestsOfOneXidAreDistinguished(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	held := s.proxy.Rules().Add(fault.Rule{Op: fault.Ping, Action: fault.HoldReply, Skip: 1})
	for range 3 {
		s.client.ping()
	}
	s.client.wantReplies(proto.XidPing)
	wantHit(t, held.Hit())
	s.client.wantSilence()
	held.Release()
	s.client.wantReplies(proto.XidPing, proto.XidPing)
}

func TestClaimOfACutConnectionIsGivenBack(t *testing.T) {
	t.Parallel()
	// prepare keeps the reply to a create from its turn.
	for name, prepare := range map[string]func(*testing.T, *scene){
		"when the reply has not come": func(_ *testing.T, s *scene) { s.proxy.Blackhole(zkproxy.ToServer) },
		"when the reply waits for its turn": func(t *testing.T, s *scene) {
			held := s.proxy.Rules().Add(fault.Rule{Op: fault.Exists, Action: fault.HoldReply})
			s.client.ask("/")
			wantHit(t, held.Hit())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			prepare(t, s)
			seen := s.proxy.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.Pass})
			lost := s.proxy.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.DropReply})
			s.client.send(proto.OpCreate, s.create(s.node))
			wantHit(t, seen.Hit())
			s.proxy.Cut()
			s.client.wantEnd()
			wantNoHit(t, lost.Hit())
			s.proxy.Heal()
			wantClaimBack(t, s.proxy, lost)
		})
	}
}

// wantClaimBack waits until a create is hit. The claim comes back when the proxy has
// noticed the end of the connection: soon, not at once.
func wantClaimBack(t *testing.T, proxy *zkproxy.Proxy, lost *fault.Handle) {
	t.Helper()
	zktest.Eventually(t, soon, "a later create is hit", func() bool {
		again := connect(t, proxy.Addr())
		again.send(proto.OpCreate, packet{}.create(proto.OpCreate, newNode(), nil))
		_, err := again.read(soon)
		return err != nil
	})
	wantHit(t, lost.Hit())
}

func TestLargeFrames(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), 60_000)
	s.client.must(proto.OpCreate, packet{}.create(proto.OpCreate, s.node, data))
	r := s.client.must(proto.OpGetData, packet{}.string(s.node).bool(false))
	if got := r.body[4 : 4+len(data)]; !bytes.Equal(got, data) {
		t.Error("data has changed on the way")
	}
	held := s.proxy.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.HoldReply})
	xid := s.client.send(proto.OpGetData, packet{}.string(s.node).bool(false))
	wantHit(t, held.Hit())
	s.client.wantSilence()
	held.Release()
	s.client.wantReplies(xid)
	lost := s.proxy.Rules().Add(fault.Rule{Op: fault.SetData, Action: fault.DropReply})
	s.client.send(proto.OpSetData, packet{}.string(s.node).bytes(data[1:]).int32(0))
	wantHit(t, lost.Hit())
	r = s.direct.must(proto.OpGetData, packet{}.string(s.node).bool(false))
	if got := r.body[4 : 4+len(data)-1]; !bytes.Equal(got, data[1:]) {
		t.Error("the write has not been applied")
	}
	s.client.wantEnd()
}
