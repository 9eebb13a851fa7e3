package zkproxy_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
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

func (s *scene) create(path string) packet { return packet{}.create(opCreate, path, nil) }

func TestCutBefore(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	cut := s.proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: s.node, Action: fault.CutBefore})
	s.client.send(opCreate, s.create(s.node))
	s.client.wantEnd()
	wantHit(t, cut.Hit())
	if s.direct.exists(s.node) {
		t.Error("the create has been applied")
	}
}

func TestDropReply(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	lost := s.proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: s.node, Action: fault.DropReply})
	s.client.send(opCreate, s.create(s.node))
	wantHit(t, lost.Hit())
	if !s.direct.exists(s.node) {
		t.Error("the create has not been applied when the rule has hit")
	}
	s.client.wantEnd()
	again := connect(t, s.proxy.Addr())
	if r := again.call(opCreate, s.create(s.node)); r.code == 0 {
		t.Error("the retried create found no node")
	}
	if lost.Hits() != 1 {
		t.Errorf("Hits() = %d; want 1, the retry goes through", lost.Hits())
	}
}

func TestHoldRequest(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	held := s.proxy.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.HoldRequest})
	before := s.client.send(opExists, packet{}.string("/").bool(false))
	first := s.client.send(opCreate, s.create(s.node))
	second := s.client.send(opExists, packet{}.string("/").bool(false))
	s.client.wantReplies(before)
	wantHit(t, held.Hit())
	s.client.wantSilence()
	if s.direct.exists(s.node) {
		t.Error("the create has been applied before Release")
	}
	held.Release()
	s.client.wantReplies(first, second)
	if !s.direct.exists(s.node) {
		t.Error("the create has not been applied after Release")
	}
}

func TestHoldReply(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	held := s.proxy.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.HoldReply})
	before := s.client.send(opExists, packet{}.string("/").bool(false))
	first := s.client.send(opCreate, s.create(s.node))
	second := s.client.send(opExists, packet{}.string("/").bool(false))
	s.client.wantReplies(before)
	wantHit(t, held.Hit())
	if !s.direct.exists(s.node) {
		t.Error("the create has not been applied when the rule has hit")
	}
	s.client.wantSilence()
	held.Release()
	s.client.wantReplies(first, second)
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
			first := s.client.send(opCreate, s.create(s.node))
			second := s.client.send(opCreate, s.create(newNode()))
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
	t.Run("Release ends it early", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		late := s.proxy.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.DelayReply, Delay: time.Hour})
		xid := s.client.send(opCreate, s.create(s.node))
		wantHit(t, late.Hit())
		late.Release()
		s.client.wantReplies(xid)
	})
}

func TestEvents(t *testing.T) {
	t.Parallel()
	// watched returns a scene in which the client has a watch on the node, and the
	// node has changed since the rule was added.
	watched := func(t *testing.T, rule fault.Rule) (*scene, *fault.Handle) {
		s := newScene(t)
		s.direct.must(opCreate, s.create(s.node))
		s.client.must(opExists, packet{}.string(s.node).bool(true))
		rule.Op, rule.Path = fault.Event, s.node
		h := s.proxy.Rules().Add(rule)
		s.direct.must(opSetData, packet{}.string(s.node).string("new").int32(-1))
		wantHit(t, h.Hit())
		return s, h
	}
	get := func(s *scene) int32 { return s.client.send(opGetData, packet{}.string(s.node).bool(false)) }

	t.Run("HoldReply keeps what follows the event behind it", func(t *testing.T) {
		t.Parallel()
		s, held := watched(t, fault.Rule{Action: fault.HoldReply})
		xid := get(s)
		s.client.wantSilence()
		held.Release()
		s.client.wantReplies(xidEvent, xid)
	})
	t.Run("DelayReply delays the event", func(t *testing.T) {
		t.Parallel()
		const delay = 200 * time.Millisecond
		start := time.Now()
		s, _ := watched(t, fault.Rule{Action: fault.DelayReply, Delay: delay})
		s.client.wantReplies(xidEvent)
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
		s.client.wantReplies(xidEvent)
	})
}

func TestRulesSelect(t *testing.T) {
	t.Parallel()
	t.Run("the session", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		other := connect(t, s.proxy.Addr())
		cut := s.proxy.Rules().Add(fault.Rule{Session: other.id, Op: fault.Exists, Action: fault.CutBefore})
		s.client.exists("/")
		wantNoHit(t, cut.Hit())
		other.send(opExists, packet{}.string("/").bool(false))
		other.wantEnd()
		s.client.exists("/")
	})
	t.Run("the count", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		cut := s.proxy.Rules().Add(fault.Rule{Op: fault.Exists, Action: fault.CutBefore, Skip: 2})
		s.client.exists("/")
		s.client.exists("/")
		wantNoHit(t, cut.Hit())
		s.client.send(opExists, packet{}.string("/").bool(false))
		s.client.wantEnd()
	})
	t.Run("every opcode that creates", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		seen := s.proxy.Rules().Add(fault.Rule{Op: fault.Create, Path: s.node + "*", Action: fault.Pass, Times: fault.Forever})
		opcodes := []int32{opCreate, opCreate2, opCreateContainer}
		for i, opcode := range opcodes {
			s.client.must(opcode, packet{}.create(opcode, s.node+string(rune('a'+i)), nil))
		}
		// TTL nodes are off in the server: the request counts nevertheless.
		s.client.call(opCreateTTL, packet{}.create(opCreateTTL, s.node+"ttl", nil))
		if got, want := seen.Hits(), len(opcodes)+1; got != want {
			t.Errorf("Hits() = %d; want %d", got, want)
		}
	})
	t.Run("a multi by the path of any part", func(t *testing.T) {
		t.Parallel()
		s := newScene(t)
		held := s.proxy.Rules().Add(fault.Rule{Op: fault.Multi, Path: s.node + "/*", Action: fault.HoldReply})
		multi := packet{}.part(opCreate).create(opCreate, s.node, []byte("data"))
		multi = multi.part(opSetData).string(s.node).string("data").int32(-1)
		multi = multi.part(opCreate2).create(opCreate2, s.node+"/child", nil)
		multi = multi.part(opDelete).string(s.node + "/child").int32(-1)
		s.client.send(opMulti, multi.end())
		wantHit(t, held.Hit())
		if !s.direct.exists(s.node) {
			t.Error("the multi has not been applied")
		}
	})
}

func TestRequestsOfOneXidAreDistinguished(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	held := s.proxy.Rules().Add(fault.Rule{Op: fault.Ping, Action: fault.HoldReply, Skip: 1})
	for range 3 {
		s.client.write(packet{}.int32(xidPing).int32(opPing))
	}
	s.client.wantReplies(xidPing)
	wantHit(t, held.Hit())
	s.client.wantSilence()
	held.Release()
	s.client.wantReplies(xidPing, xidPing)
}

func TestClaimOfACutConnectionIsGivenBack(t *testing.T) {
	t.Parallel()
	// prepare keeps the reply to a create from its turn.
	for name, prepare := range map[string]func(*testing.T, *scene){
		"when the reply has not come": func(_ *testing.T, s *scene) { s.proxy.Blackhole(zkproxy.ToServer) },
		"when the reply waits for its turn": func(t *testing.T, s *scene) {
			held := s.proxy.Rules().Add(fault.Rule{Op: fault.Exists, Action: fault.HoldReply})
			s.client.send(opExists, packet{}.string("/").bool(false))
			wantHit(t, held.Hit())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			prepare(t, s)
			seen := s.proxy.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.Pass})
			lost := s.proxy.Rules().Add(fault.Rule{Op: fault.Create, Action: fault.DropReply})
			s.client.send(opCreate, s.create(s.node))
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
		again.send(opCreate, packet{}.create(opCreate, newNode(), nil))
		_, err := again.read(soon)
		return err != nil
	})
	wantHit(t, lost.Hit())
}

func TestLargeFrames(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	data := bytes.Repeat([]byte("0123456789abcdef"), 60_000)
	s.client.must(opCreate, packet{}.create(opCreate, s.node, data))
	r := s.client.must(opGetData, packet{}.string(s.node).bool(false))
	if got := r.body[4 : 4+len(data)]; !bytes.Equal(got, data) {
		t.Error("data has changed on the way")
	}
	held := s.proxy.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.HoldReply})
	xid := s.client.send(opGetData, packet{}.string(s.node).bool(false))
	wantHit(t, held.Hit())
	s.client.wantSilence()
	held.Release()
	s.client.wantReplies(xid)
	lost := s.proxy.Rules().Add(fault.Rule{Op: fault.SetData, Action: fault.DropReply})
	s.client.send(opSetData, packet{}.string(s.node).bytes(data[1:]).int32(0))
	wantHit(t, lost.Hit())
	r = s.direct.must(opGetData, packet{}.string(s.node).bool(false))
	if got := r.body[4 : 4+len(data)-1]; !bytes.Equal(got, data[1:]) {
		t.Error("the write has not been applied")
	}
	s.client.wantEnd()
}
