package watchreg_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/framework/internal/watchreg"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
)

// A server keeps the reads that were sent. It answers the next read by next, if that is set. Other reads wait for their test.
type server struct {
	*watchreg.Registry
	reads []*read
	next  func(*read)
}

func newServer() *server {
	return &server{Registry: watchreg.New(func(fn func()) { fn() }, func(string) watchreg.Removal { return nil })}
}

// begin begins a Subscription of the data at /a.
func (s *server) begin(shared bool) subscription { return s.beginAt(dataKey(), shared) }

func (s *server) beginAt(key watchreg.Key, shared bool) subscription {
	sub := new(watchreg.Subscription)
	return subscription{sub, s.Begin(sub, key, func(watch bool, answered func(*proto.Node)) watchreg.Read {
		r := &read{watch: watch, done: make(chan struct{}), answered: answered}
		s.reads = append(s.reads, r)
		if s.next != nil {
			s.next(r)
			s.next = nil
		}
		return r
	}, shared)}
}

func dataKey() watchreg.Key { return watchreg.Key{Kind: watchreg.Data, Path: "/a"} }

type subscription struct {
	*watchreg.Subscription
	begun watchreg.Beginning
}

func (s subscription) mustWait(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // for a fault: no test waits
	defer cancel()
	if err := s.begun.Wait(ctx); err != nil {
		t.Fatal(err)
	}
}

func (s subscription) want(t *testing.T, event watchreg.Event, valid bool) {
	t.Helper()
	if s.Event() != event || s.Valid() != valid {
		t.Errorf("event %d, valid %t; want %d, %t", s.Event(), s.Valid(), event, valid)
	}
}

// A read is under way until it is answered.
type read struct {
	watch    bool // it leaves a watch
	answered func(*proto.Node)
	done     chan struct{}
	node     *proto.Node
	err      error
}

// found answers with a znode whose data the transaction changed.
func (r *read) found(mzxid int64) {
	r.node = &proto.Node{Exists: true, Stat: proto.Stat{Czxid: 1, Mzxid: mzxid, Pzxid: 1}}
	if r.answered != nil {
		r.answered(r.node)
	}
	close(r.done)
}

func (r *read) failed(err error) {
	r.node, r.err = new(proto.Node), err
	close(r.done)
}

func (r *read) Wait(ctx context.Context) (*proto.Node, error) {
	select {
	case <-r.done:
		return r.node, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *read) Join() {}

func (s *server) wantReads(t *testing.T, n int) {
	t.Helper()
	if len(s.reads) != n {
		t.Fatalf("%d reads, want %d", len(s.reads), n)
	}
}

// watched returns a Subscription whose watch the server has.
func (s *server) watched(t *testing.T) subscription {
	t.Helper()
	sub := s.begin(false)
	s.reads[len(s.reads)-1].found(1)
	sub.mustWait(t)
	return sub
}

func TestSubscriptionsOfOneKeyShareTheWatch(t *testing.T) {
	s := newServer()
	first, second := s.watched(t), s.watched(t)
	if n := s.Armed(); n != 1 {
		t.Errorf("%d watches at the server, want 1", n)
	}
	if !s.reads[0].watch || s.reads[1].watch {
		t.Errorf("reads leave watches: %t, %t; want only the first to", s.reads[0].watch, s.reads[1].watch)
	}
	closed := s.watched(t)
	closed.Close()
	s.Fire(watchreg.Changed, "/a")
	first.want(t, watchreg.Changed, false)
	second.want(t, watchreg.Changed, false)
	closed.want(t, 0, false)
	s.watched(t).want(t, 0, true) // by another watch: the server has forgotten the first
}

func TestEventsConcernKindsOfWatches(t *testing.T) {
	for _, c := range []struct {
		event watchreg.Event
		fires map[watchreg.Kind]bool
	}{
		{watchreg.Created, map[watchreg.Kind]bool{watchreg.Exists: true}},
		{watchreg.Changed, map[watchreg.Kind]bool{watchreg.Exists: true, watchreg.Data: true}},
		{watchreg.ChildrenChanged, map[watchreg.Kind]bool{watchreg.Children: true}},
		{watchreg.Deleted, map[watchreg.Kind]bool{watchreg.Exists: true, watchreg.Data: true, watchreg.Children: true}},
	} {
		for _, kind := range []watchreg.Kind{watchreg.Data, watchreg.Exists, watchreg.Children} {
			s := newServer()
			sub := s.beginAt(watchreg.Key{Kind: kind, Path: "/a"}, false)
			s.reads[0].found(1)
			sub.mustWait(t)
			s.Fire(c.event, "/b")
			sub.want(t, 0, true)
			s.Fire(c.event, "/a")
			if fired := sub.Event() == c.event; fired != c.fires[kind] {
				t.Errorf("event %d, kind %d: fired %t, want %t", c.event, kind, fired, c.fires[kind])
			}
		}
	}
}

func TestSharedReads(t *testing.T) {
	t.Run("are_repeated_if_they_found_no_znode", func(t *testing.T) {
		s := newServer()
		first, second := s.begin(true), s.begin(true)
		s.reads[0].failed(zkerr.ErrNoNode)
		if err := first.begun.Wait(t.Context()); !errors.Is(err, zkerr.ErrNoNode) {
			t.Errorf("got %v, want ErrNoNode", err)
		}
		s.next = func(r *read) { r.found(2) }
		second.mustWait(t)
		if second.Found().Stat.Mzxid != 2 {
			t.Errorf("found %+v, want what the second read found", second.Found())
		}
		s.wantReads(t, 2)
		s.Fire(watchreg.Deleted, "/a")
		second.want(t, watchreg.Deleted, false)
	})
	t.Run("are_repeated_if_they_were_taken_back", func(t *testing.T) { // before the second had joined
		s := newServer()
		s.begin(true)
		second := s.begin(true)
		s.reads[0].failed(zkerr.ErrNotSent)
		s.next = func(r *read) { r.found(2) }
		second.mustWait(t)
		s.wantReads(t, 2)
	})
	t.Run("are_not_shared_once_their_caller_withdrew", func(t *testing.T) {
		s := newServer()
		first := s.begin(true)
		s.begin(true)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := first.begun.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		if s.Armed() != 0 {
			t.Error("the server is taken to have the watch")
		}
		s.begin(true)
		s.wantReads(t, 2)
		first.want(t, 0, false)
	})
	t.Run("are_not_used_once_the_watch_has_fired", func(t *testing.T) {
		s := newServer()
		first := s.begin(true)
		s.reads[0].found(1)
		first.mustWait(t)
		s.Fire(watchreg.Changed, "/a")
		s.begin(true)
		s.wantReads(t, 2)
	})
}

// A caller has left a Watch while its read was under way. The event of that read's watch tells of a change before the
// state that the next caller's read finds.
func TestAnEventBeforeTheReplyIsOfAnEarlierWatch(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		s := newServer()
		ctx, leave := context.WithCancel(t.Context())
		leave()
		left := s.begin(shared)
		if err := left.begun.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		subs := []subscription{s.begin(shared), s.begin(shared)}
		s.reads[0].found(1)
		s.Fire(watchreg.Deleted, "/a")
		for _, one := range s.reads[1:] {
			one.found(2)
		}
		for _, sub := range subs {
			sub.mustWait(t)
			if got := sub.Event(); got != watchreg.Unseen {
				t.Errorf("shared %v: the event of the deletion of a former znode is %v, want %v", shared, got, watchreg.Unseen)
			}
		}
		before := len(s.reads)
		later := []subscription{s.begin(shared), s.begin(shared)}
		for _, one := range s.reads[before:] {
			one.found(2)
		}
		later = append(later, s.begin(true)) // by what is read, or known
		if n := len(s.reads); s.reads[n-1].node == nil {
			s.reads[n-1].found(2)
		}
		s.Fire(watchreg.Deleted, "/a") // before the caller of Wait comes to it
		for _, sub := range later {
			sub.mustWait(t)
			if got := sub.Event(); got != watchreg.Deleted {
				t.Errorf("shared %v: the event after the reply is %v, want %v", shared, got, watchreg.Deleted)
			}
		}
	}
}
