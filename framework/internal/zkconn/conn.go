// Package zkconn is the only package that knows the wire client. Of the wire client's types its
// exported signatures have only access lists, and its errors are package zkerr's.
package zkconn

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"

	"github.com/go-zookeeper/zk"
)

// A Conn is one connection of the wire client. It carries one session and is never used for the
// next session. So no queued request of an old session can run in a new one. Its methods block
// until the server has replied, the connection broke or the wire was closed. They return the errors
// of package zkerr.
type Conn struct {
	conn   *zk.Conn
	events <-chan zk.Event

	mu    sync.Mutex     // guards following
	ended bool           // close has begun
	ttls  sync.WaitGroup // creates with a TTL in progress, for finishTTLs
}

// requestSlack is space in the wire client's buffer after the longest request. If a request ends
// exactly at the buffer's end, the wire client panics.
const requestSlack = 64

// New starts to connect; it does not wait.
func New(cfg Config) (*Conn, error) {
	conn, events, err := zk.Connect([]string{cfg.Host}, cfg.Timeout,
		zk.WithHostProvider(cfg.Hosts),
		zk.WithDialer(func(_, addr string, _ time.Duration) (net.Conn, error) { return cfg.Dial(addr) }),
		zk.WithEventCallback(func(ev zk.Event) { dispatch(cfg, ev) }),
		zk.WithLogger(wireLogger{cfg.Logger.Sugar()}),
		zk.WithLogInfo(false),
		zk.WithMaxBufferSize(cfg.Reply),
		zk.WithMaxConnBufferSize(cfg.Request+requestSlack),
	)
	if err != nil {
		return nil, fmt.Errorf("wire client: %s", err.Error())
	}
	return &Conn{conn: conn, events: events}, nil
}

// dispatch runs on the wire client's goroutines. It returns before the wire client processes later
// events and replies of the connection.
func dispatch(cfg Config, ev zk.Event) {
	switch ev.Type {
	case zk.EventSession:
		switch ev.State {
		case zk.StateHasSession:
			cfg.OnLink(LinkUp)
		case zk.StateDisconnected:
			cfg.OnLink(LinkDown)
		case zk.StateExpired:
			cfg.OnLink(LinkExpired)
		}
	case zk.EventNodeCreated:
		cfg.OnNode(NodeCreated, ev.Path)
	case zk.EventNodeDeleted:
		cfg.OnNode(NodeDeleted, ev.Path)
	case zk.EventNodeDataChanged:
		cfg.OnNode(NodeDataChanged, ev.Path)
	case zk.EventNodeChildrenChanged:
		cfg.OnNode(NodeChildrenChanged, ev.Path)
	}
}

// Grace is how long the end of a wire waits for requests that must not be interrupted. The wire
// client itself waits for a second.
const Grace = 500 * time.Millisecond

// Close ends the session in order if there is a connection, which takes a second at the most. It
// returns when the wire client's goroutines have ended. cut closes the socket in use.
func (w *Conn) Close(cut func()) {
	w.finishTTLs(cut)
	w.conn.Close()
	cut()
	for range w.events { // closed by the wire client when it is done
	}
}

// finishTTLs waits until no create with a TTL is in progress: the wire client would read its reply
// while it is still being decoded. If that takes too long, finishTTLs cuts the connection, which
// ends them.
func (w *Conn) finishTTLs(cut func()) {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	timer := time.AfterFunc(Grace, cut)
	w.ttls.Wait()
	timer.Stop()
}

// errOtherForm is returned once for each kind of create that a server does not know. The create had no
// effect, and the next has the form that the server knows.
var errOtherForm = fmt.Errorf("%w: the server does not know this kind of create", zkerr.ErrNotConnected)

// Create creates a znode and returns its path.
func (w *Conn) Create(path string, data []byte, flags int32, acl []ACL) (string, error) {
	created, err := w.conn.Create(path, data, flags, acl)
	if err = translated(err); errors.Is(err, zkerr.ErrUnsupported) {
		return "", errOtherForm
	}
	return created, err
}

// CreateTTL creates a znode that the server removes after the time.
func (w *Conn) CreateTTL(path string, data []byte, flags int32, acl []ACL, ttl time.Duration) (string, error) {
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return "", zkerr.ErrNotConnected
	}
	w.ttls.Add(1)
	w.mu.Unlock()
	defer w.ttls.Done()
	created, err := w.conn.CreateTTL(path, data, flags, acl, ttl)
	return created, translated(err)
}

// Get reads a znode's data and Stat.
func (w *Conn) Get(path string) (proto.Node, error) {
	data, st, err := w.conn.Get(path)
	if err != nil {
		return proto.Node{}, translated(err)
	}
	return proto.Node{Exists: true, Stat: proto.Stat(*st), Data: data}, nil
}

// Exists reads a znode's Stat.
func (w *Conn) Exists(path string) (proto.Node, error) {
	ok, st, err := w.conn.Exists(path)
	if err != nil || !ok { // with an error, ok has no meaning
		return proto.Node{}, translated(err)
	}
	return proto.Node{Exists: true, Stat: proto.Stat(*st)}, nil
}

// Children reads the names of a znode's children, and its Stat.
func (w *Conn) Children(path string) (proto.Node, error) {
	names, st, err := w.conn.Children(path)
	if err != nil {
		return proto.Node{}, translated(err)
	}
	return proto.Node{Exists: true, Stat: proto.Stat(*st), Children: names}, nil
}

// Set replaces a znode's data.
func (w *Conn) Set(path string, data []byte, version int32) (proto.Stat, error) {
	st, err := w.conn.Set(path, data, version)
	return statOf(st, err)
}

// Delete deletes a znode.
func (w *Conn) Delete(path string, version int32) error {
	return translated(w.conn.Delete(path, version))
}

// Sync makes the server catch up with the leader.
func (w *Conn) Sync(path string) error {
	_, err := w.conn.Sync(path)
	return translated(err)
}

// GetACL reads a znode's access list and Stat.
func (w *Conn) GetACL(path string) ([]ACL, proto.Stat, error) {
	acl, st, err := w.conn.GetACL(path)
	if err != nil {
		return nil, proto.Stat{}, translated(err)
	}
	return acl, proto.Stat(*st), nil
}

// SetACL replaces a znode's access list.
func (w *Conn) SetACL(path string, acl []ACL, version int32) (proto.Stat, error) {
	st, err := w.conn.SetACL(path, acl, version)
	return statOf(st, err)
}

func statOf(st *zk.Stat, err error) (proto.Stat, error) {
	if err != nil {
		return proto.Stat{}, translated(err)
	}
	return proto.Stat(*st), nil
}
