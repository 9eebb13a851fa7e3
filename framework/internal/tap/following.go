package tap

import "github.com/docent-go/docent/internal/proto"

// A Following follows one request of the wire client, a create or a transaction, from its
// sending to its reply. The wire client does not say which frame is whose, so a request is
// known by its kind and path: of those that are alike, the next is handed to the wire client
// only when the one before has been sent. So all creates have to be followed.
type Following struct {
	tap  *Tap
	key  followKey
	sent chan struct{} // closed when the request has been sent
	over chan struct{} // closed by End

	// guarded by tap.mu
	stat  proto.Stat
	known bool
}

// A followKey names the requests that are alike: creates of a path, or transactions whose first
// operation is on the path.
type followKey struct {
	transaction bool
	path        string
}

// FollowCreate returns a Following for a create of the path.
func (t *Tap) FollowCreate(path string) *Following { return t.follow(followKey{false, path}) }

// FollowTransaction returns a Following for a transaction whose first operation is on the path.
// Other transactions that begin there must not be sent meanwhile.
func (t *Tap) FollowTransaction(path string) *Following { return t.follow(followKey{true, path}) }

func (t *Tap) follow(key followKey) *Following {
	return &Following{tap: t, key: key, sent: make(chan struct{}), over: make(chan struct{})}
}

// Begin is called before the request is handed to the wire client. It returns once every
// request that is like it, and that began before, has been sent or is over.
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

// enter makes f the Following of its key, or returns the one that is.
func (f *Following) enter() (before *Following) {
	f.tap.mu.Lock()
	defer f.tap.mu.Unlock()
	if before := f.tap.following[f.key]; before != nil {
		return before
	}
	f.tap.following[f.key] = f
	return nil
}

// Sent returns a channel that is closed when the request goes to the server: what is handed to
// the wire client from then on is sent after it.
func (f *Following) Sent() <-chan struct{} { return f.sent }

// End is called when the wire client has returned. It returns the Stat of the znode that the
// create made, or for a transaction one that has the transaction's id alone, if the reply
// had it.
func (f *Following) End() (st proto.Stat, known bool) {
	f.tap.mu.Lock()
	defer f.tap.mu.Unlock()
	if f.tap.following[f.key] == f {
		delete(f.tap.following, f.key)
	}
	close(f.over)
	return f.stat, f.known
}

// sendsLocked takes note that a request is being sent, and returns who follows it, or nil. It
// needs mu.
func (t *Tap) sendsLocked(transaction bool, path []byte) *Following {
	key := followKey{transaction, string(path)}
	f := t.following[key]
	if f != nil {
		delete(t.following, key)
		close(f.sent)
	}
	return f
}

// repliedLocked takes what the reply says. It needs mu.
func (f *Following) repliedLocked(rp reply) {
	switch {
	case f == nil || rp.code != 0:
	case f.key.transaction:
		f.stat, f.known = proto.Stat{Czxid: rp.zxid}, true
	default:
		_, f.stat, f.known = parseCreated(rp.body)
	}
}
