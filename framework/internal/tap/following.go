package tap

import (
	"encoding/binary"
	"time"

	"github.com/docent-go/docent/internal/proto"
)

// A Following follows one request of the wire client, a create or a transaction, from its sending
// to its reply. The wire client does not say to which request a frame belongs, so the kind and the
// path identify the request. Of requests with one kind and path, the next is passed to the wire
// client only when its predecessor has been sent. So all creates have to be followed.
type Following struct {
	tap  *Tap
	key  followKey
	sent chan struct{} // closed when the request has been sent
	over chan struct{} // closed by End

	// guarded by tap.mu
	stat  proto.Stat
	known bool
}

// A followKey identifies requests of one kind and path: creates of a path, or transactions whose
// first operation is on the path.
type followKey struct {
	transaction bool
	path        string
}

// FollowCreate returns a Following for a create of the path.
func (t *Tap) FollowCreate(path string) *Following { return t.follow(followKey{false, path}) }

// FollowTransaction returns a Following for a transaction whose first operation is on the path. If
// another transaction with such a first operation is sent meanwhile, the Following may follow that.
func (t *Tap) FollowTransaction(path string) *Following { return t.follow(followKey{true, path}) }

func (t *Tap) follow(key followKey) *Following {
	return &Following{tap: t, key: key, sent: make(chan struct{}), over: make(chan struct{})}
}

// Begin is called before the request is passed to the wire client. It returns once every earlier
// request with the same key has been sent or is over.
func (f *Following) Begin() {
	for {
		before := f.enter()
		if before == nil {
			return
		}
		select {
		case <-before.sent:
		case <-before.over:
		}
	}
}

// enter makes f the Following of its key, or returns the present one.
func (f *Following) enter() (before *Following) {
	f.tap.mu.Lock()
	defer f.tap.mu.Unlock()
	if before := f.tap.following[f.key]; before != nil {
		return before
	}
	f.tap.following[f.key] = f
	return nil
}

// Sent returns a channel that is closed when the request goes to the server. If a request is passed
// to the wire client after that, it is sent after this one.
func (f *Following) Sent() <-chan struct{} { return f.sent }

// Over returns a channel that is closed by End.
func (f *Following) Over() <-chan struct{} { return f.over }

// End is called when the wire client has returned. If the reply had it, End returns the Stat of the
// znode that the create made. For a transaction that Stat has only the transaction's id.
func (f *Following) End() (st proto.Stat, known bool) {
	f.tap.mu.Lock()
	defer f.tap.mu.Unlock()
	if f.tap.following[f.key] == f {
		delete(f.tap.following, f.key)
	}
	close(f.over)
	return f.stat, f.known
}

// sendsLocked records that a request is being sent, and returns its Following, or nil. It needs mu.
func (t *Tap) sendsLocked(transaction bool, path []byte) *Following {
	key := followKey{transaction, string(path)}
	f := t.following[key]
	if f != nil {
		delete(t.following, key)
		close(f.sent)
	}
	return f
}

// repliedLocked records the content of the reply. It needs mu.
func (f *Following) repliedLocked(rp reply) {
	switch {
	case f == nil || rp.code != 0:
	case f.key.transaction:
		f.stat, f.known = proto.Stat{Czxid: rp.zxid}, true
	default: // the body of a plain create has no Stat
		_, f.stat, f.known = parseCreated(rp.body)
	}
}

// completeCreateLocked changes the opcode of a create to the opcode whose reply has a Stat. If the server
// lacks that, it remains a create; if the server lacks containers, the znode is persistent. It needs
// tap.mu.
func (c *Conn) completeCreateLocked(p []byte, rq *request) []byte {
	path, _, ok := readString(p[proto.LengthSize+proto.RequestHeadSize:])
	if !ok {
		return p
	}
	rq.following = c.tap.sendsLocked(false, path)
	p = append([]byte(nil), p...) // a Writer must not change its argument
	container := int32At(p, len(p)-4) == proto.FlagContainer
	switch {
	case container && !c.lacks(proto.OpCreateContainer):
		rq.opcode = proto.OpCreateContainer
	case container:
		binary.BigEndian.PutUint32(p[len(p)-4:], 0)
		fallthrough
	default:
		if !c.lacks(proto.OpCreate2) {
			rq.opcode = proto.OpCreate2
		}
	}
	binary.BigEndian.PutUint32(p[proto.LengthSize+4:], uint32(rq.opcode))
	return p
}

// parseCreated parses the body of a create2 reply: the znode's path and Stat.
func parseCreated(body []byte) (path string, st proto.Stat, ok bool) {
	d := proto.NewDecoder(body)
	path, st = d.Path(), d.Stat()
	if d.Err() != nil {
		return "", proto.Stat{}, false
	}
	return path, st, true
}

// A request is a request that waits for its reply.
type request struct {
	xid       int32
	opcode    proto.Opcode
	sent      time.Time
	following *Following // may be nil
	question  *question  // of the Tap's own; else nil
}

// followTransactionLocked records a transaction that is being sent. The path of its first operation
// identifies it. It needs mu.
func (t *Tap) followTransactionLocked(p []byte, rq *request) {
	const first = proto.LengthSize + proto.RequestHeadSize + proto.OpHeadSize
	if len(p) < first {
		return
	}
	path, _, ok := readString(p[first:])
	if !ok {
		return
	}
	rq.following = t.sendsLocked(true, path)
}
