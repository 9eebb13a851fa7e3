package queue

import "sync/atomic"

// A Trail remembers the latest node that was granted in a queue and has been deleted
// since. Should the next node's creation be the second transaction after that one's,
// with the deletion as the only one between, then nothing else has happened in the
// whole ensemble: nobody stood ahead of the first node when it went, so nobody stands
// ahead of the second, and there is no need to list the directory. Every change takes
// a transaction, the removal of the directory too, so there is no doubt left. Both
// nodes have to be of one session: a server that lost its data counts anew, and a
// session does not outlive that.
//
// Where others write, that does not hold, and a listing that was not asked for
// together with the creation costs a round trip; so a Trail is not followed for
// a while then. Its methods may be called concurrently.
type Trail struct {
	last atomic.Pointer[passage] // nil while there is none
	cold atomic.Int32            // how many attempts are still to list all the same
}

// A passage is a node that came and went.
type passage struct{ session, czxid int64 }

// coldAttempts is how many attempts list after one that had better done so.
const coldAttempts = 32

// head returns the czxid of the node that an attempt of the session may count on, or 0.
func (t *Trail) head(session int64) int64 {
	if t == nil || t.cold.Load() > 0 && t.cold.Add(-1) >= 0 {
		return 0
	}
	if last := t.last.Load(); last != nil && last.session == session {
		return last.czxid
	}
	return 0
}

// follows reports whether the node with the czxid was created right after that of
// head was deleted.
func (t *Trail) follows(head, czxid int64) bool {
	if czxid == head+2 {
		return true
	}
	t.cold.Store(coldAttempts)
	return false
}

// left takes note that a node that was granted in the session has been deleted.
func (t *Trail) left(session, czxid int64) {
	if t != nil {
		t.last.Store(&passage{session, czxid})
	}
}
