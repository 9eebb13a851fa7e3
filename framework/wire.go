package framework

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"

	"github.com/go-zookeeper/zk"
)

// A wire is one connection of the wire client: this file is all that knows it.
// It carries one session and is never used for the next one, so that nothing
// queued under an old session can run under a new one. Its methods block until
// the server has answered, the connection broke or the wire was closed; they
// return the errors of this package.
type wire struct {
	conn   *zk.Conn
	events <-chan zk.Event

	mu    sync.Mutex     // guards following
	ended bool           // close has begun
	ttls  sync.WaitGroup // creates with a TTL in progress; see close
}

// requestSlack is room in the wire client's buffer beyond the longest request.
// Where a request ends exactly at the buffer's end the wire client panics.
const requestSlack = 64

// newWire starts to connect; it does not wait.
func newWire(cfg wireConfig) (*wire, error) {
	conn, events, err := zk.Connect([]string{wireHost}, cfg.timeout,
		zk.WithHostProvider(cfg.hosts),
		zk.WithDialer(func(_, addr string, _ time.Duration) (net.Conn, error) { return cfg.dial(addr) }),
		zk.WithEventCallback(func(ev zk.Event) { dispatch(cfg, ev) }),
		zk.WithLogger(wireLogger{cfg.logger.Sugar()}),
		zk.WithLogInfo(false),
		zk.WithMaxBufferSize(cfg.reply),
		zk.WithMaxConnBufferSize(cfg.request+requestSlack),
	)
	if err != nil {
		return nil, fmt.Errorf("wire client: %s", err.Error())
	}
	return &wire{conn: conn, events: events}, nil
}

// dispatch runs on the wire client's goroutines, before anything that follows
// the event in the order of the connection.
func dispatch(cfg wireConfig, ev zk.Event) {
	switch ev.Type {
	case zk.EventSession:
		switch ev.State {
		case zk.StateHasSession:
			cfg.onLink(linkUp)
		case zk.StateDisconnected:
			cfg.onLink(linkDown)
		case zk.StateExpired:
			cfg.onLink(linkExpired)
		}
	case zk.EventNodeCreated:
		cfg.onNode(EventCreated, ev.Path)
	case zk.EventNodeDeleted:
		cfg.onNode(EventDeleted, ev.Path)
	case zk.EventNodeDataChanged:
		cfg.onNode(EventChanged, ev.Path)
	case zk.EventNodeChildrenChanged:
		cfg.onNode(EventChildrenChanged, ev.Path)
	}
}

// wireGrace is how long the end of a wire waits for what must not be
// interrupted; the wire client itself waits for a second.
const wireGrace = 500 * time.Millisecond

// close ends the session in order where there is a connection, which takes a
// second at the most, and returns when the wire client's goroutines are gone.
// cut closes the socket in use.
func (w *wire) close(cut func()) {
	w.finishTTLs(cut)
	w.conn.Close()
	cut()
	for range w.events { // closed by the wire client when it is done
	}
}

// finishTTLs waits until no create with a TTL is in progress: the wire client
// would read its reply while it is still being decoded. Where that takes too
// long it cuts the connection, which ends them.
func (w *wire) finishTTLs(cut func()) {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	timer := time.AfterFunc(wireGrace, cut)
	w.ttls.Wait()
	timer.Stop()
}

func (w *wire) create(path string, data []byte, flags int32, acl []ACL) (string, error) {
	created, err := w.conn.Create(path, data, flags, wireACL(acl))
	return created, wireError(err)
}

func (w *wire) createTTL(path string, data []byte, flags int32, acl []ACL, ttl time.Duration) (string, error) {
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return "", ErrNotConnected
	}
	w.ttls.Add(1)
	w.mu.Unlock()
	defer w.ttls.Done()
	created, err := w.conn.CreateTTL(path, data, flags, wireACL(acl), ttl)
	return created, wireError(err)
}

func (w *wire) get(path string) (nodeState, error) {
	data, st, err := w.conn.Get(path)
	if err != nil {
		return nodeState{}, wireError(err)
	}
	return nodeState{exists: true, stat: wireStat(st), data: data}, nil
}

func (w *wire) exists(path string) (nodeState, error) {
	ok, st, err := w.conn.Exists(path)
	if err != nil || !ok { // ok means nothing where there is an error
		return nodeState{}, wireError(err)
	}
	return nodeState{exists: true, stat: wireStat(st)}, nil
}

func (w *wire) children(path string) (nodeState, error) {
	names, st, err := w.conn.Children(path)
	if err != nil {
		return nodeState{}, wireError(err)
	}
	return nodeState{exists: true, stat: wireStat(st), children: names}, nil
}

func (w *wire) set(path string, data []byte, version int32) (Stat, error) {
	st, err := w.conn.Set(path, data, version)
	if err != nil {
		return Stat{}, wireError(err)
	}
	return wireStat(st), nil
}

func (w *wire) delete(path string, version int32) error {
	return wireError(w.conn.Delete(path, version))
}

func (w *wire) sync(path string) error {
	_, err := w.conn.Sync(path)
	return wireError(err)
}

func (w *wire) getACL(path string) ([]ACL, Stat, error) {
	acl, st, err := w.conn.GetACL(path)
	if err != nil {
		return nil, Stat{}, wireError(err)
	}
	entries := make([]ACL, len(acl))
	for i, a := range acl {
		entries[i] = ACL{Permission(a.Perms), a.Scheme, a.ID}
	}
	return entries, wireStat(st), nil
}

func (w *wire) setACL(path string, acl []ACL, version int32) (Stat, error) {
	st, err := w.conn.SetACL(path, wireACL(acl), version)
	if err != nil {
		return Stat{}, wireError(err)
	}
	return wireStat(st), nil
}

// multi returns a result and an error per operation, as the server gave them,
// and the error of the whole.
func (w *wire) multi(ops []TxnOp) ([]TxnResult, []error, error) {
	requests := make([]any, len(ops))
	for i, op := range ops {
		requests[i] = wireOp(op)
	}
	responses, err := w.conn.Multi(requests...)
	results, faults := make([]TxnResult, len(responses)), make([]error, len(responses))
	for i, r := range responses {
		results[i].Path = r.String
		if r.Stat != nil {
			results[i].Stat = wireStat(r.Stat)
		}
		faults[i] = wireError(r.Error)
	}
	return results, faults, wireError(err)
}

func wireOp(op TxnOp) any {
	switch op.kind {
	case txnCreate:
		return &zk.CreateRequest{Path: op.path, Data: op.data, Acl: wireACL(op.acl), Flags: op.flags}
	case txnSet:
		return &zk.SetDataRequest{Path: op.path, Data: op.data, Version: op.version}
	case txnDelete:
		return &zk.DeleteRequest{Path: op.path, Version: op.version}
	default:
		return &zk.CheckVersionRequest{Path: op.path, Version: op.version}
	}
}

func wireACL(acl []ACL) []zk.ACL {
	entries := make([]zk.ACL, len(acl))
	for i, a := range acl {
		entries[i] = zk.ACL{Perms: int32(a.Perms), Scheme: a.Scheme, ID: a.ID}
	}
	return entries
}

func wireStat(st *zk.Stat) Stat { return statOf(proto.Stat(*st)) }

// unnamedCode begins the wire client's text for a server's code that it has no
// name for.
const unnamedCode = "unknown error: "

var errReplyTooLarge = fmt.Errorf("%w: the reply", ErrTooLarge)

// wireError translates an error of the wire client. What it has no name for is
// an error of the socket: the request may or may not have arrived.
func wireError(err error) error {
	if err == nil {
		return nil
	}
	for _, e := range []struct{ wire, ours error }{
		{zk.ErrNoNode, ErrNoNode},
		{zk.ErrNodeExists, ErrNodeExists},
		{zk.ErrBadVersion, ErrBadVersion},
		{zk.ErrNotEmpty, ErrNotEmpty},
		{zk.ErrNoChildrenForEphemerals, ErrNoChildrenForEphemerals},
		{zk.ErrNoAuth, ErrNoAuth},
		{zk.ErrAuthFailed, ErrAuthFailed},
		{zk.ErrInvalidACL, ErrInvalidACL},
		{zk.ErrBadArguments, ErrBadArguments},
		{zk.ErrInvalidPath, ErrInvalidPath},
		{zk.ErrNoServer, ErrNotConnected},
		{zk.ErrSessionMoved, ErrNotConnected}, // refused before it took effect
		{zk.ErrShortBuffer, ErrTooLarge},      // and not sent: replies are checked
		{zk.ErrAPIError, ErrServer},
		{zk.ErrUnknown, ErrServer},
		{zk.ErrConnectionClosed, ErrUnknownOutcome},
		{zk.ErrClosing, ErrUnknownOutcome},
		{zk.ErrSessionExpired, ErrUnknownOutcome},
	} {
		if errors.Is(err, e.wire) {
			return e.ours
		}
	}
	if code, ok := strings.CutPrefix(err.Error(), unnamedCode); ok {
		return unnamedError(code)
	}
	return fmt.Errorf("%w: %s", ErrUnknownOutcome, err.Error())
}

// unnamedError returns the error for a code that the wire client has no name for.
func unnamedError(text string) error {
	code, err := strconv.ParseInt(text, 10, 32)
	switch {
	case err != nil:
		return zkerr.Unnamed(text)
	case code == tap.CodeTooLarge:
		return errReplyTooLarge
	case code == tap.CodeCut:
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, errReplyTooLarge)
	}
	switch code := proto.Code(code); code {
	case proto.CodeThrottled, proto.CodeNotReadOnly, proto.CodeAuthRequired:
		return zkerr.OfCode(code)
	}
	return zkerr.Unnamed(text)
}
