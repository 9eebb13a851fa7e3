package lease

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/exactjson"
	"github.com/docent-go/docent/recipes/internal/hold"
)

// A Participant is one contender: the holder or a waiter.
type Participant struct {
	Path     string // of its znode
	Kind     string // of the znode's name, as in "lock-"
	Session  int64  // that the znode belongs to
	Sequence int64  // its place in the order
	Holder   bool
	Revoked  bool      // another client has asked it to release, which replaced its data
	Data     []byte    // the data that the contender was given
	Metadata *Metadata // nil if the znode has none, such as a Curator process's

	// Err says why the client can't read the znode: it matches [framework.ErrNoAuth],
	// [framework.ErrTooLarge] or [framework.ErrNotGzip]. What the znode's name says is known nevertheless:
	// Path, Kind, Sequence and Holder.
	Err error
}

// MetadataVersion is the present version of the format of [Metadata].
const MetadataVersion = 1

// Metadata describes the creator of a contender's znode, as JSON in the znode's data. No contender
// decides by it: it is for people who search for the holder of a lock.
type Metadata struct {
	Version int       `json:"docent"`          // of this format, 1
	Owner   string    `json:"owner,omitempty"` // name of the owner, "" for a goroutine
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Attempt string    `json:"attempt,omitempty"` // id of the attempt, if the znode's name has none
	Since   time.Time `json:"since"`             // when the attempt began, by the contender's clock
	Data    []byte    `json:"data,omitempty"`

	// Traceparent leads to the trace of the call that made the znode, in the format of W3C Trace
	// Context.
	Traceparent string `json:"traceparent,omitempty"`

	// Party is the same for all znodes of one owner, in every session and process, and differs between
	// owners. It is random. A goroutine is an owner, too. With Handoff the znode shows its creator,
	// and several owners of the process use it one after another.
	Party   string `json:"party,omitempty"`
	Handoff bool   `json:"handoff,omitempty"`

	// Process is a random id of the process. Host and PID may be those of several, in containers.
	Process string `json:"process,omitempty"`
}

// IsOwn reports whether a client of this process made the znode.
func (m Metadata) IsOwn() bool { return m.Process == hold.Process() }

// Encode returns the metadata as a znode holds it.
func (m Metadata) Encode() []byte {
	encoded, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings, numbers and bytes always encode
	}
	return encoded
}

// DecodeMetadata returns the metadata in a znode's data. It reports false for another format.
func DecodeMetadata(data []byte) (*Metadata, bool) {
	if len(data) == 0 || data[0] != '{' {
		return nil, false
	}
	var m Metadata
	if err := exactjson.Unmarshal(data, &m); err != nil || m.Version < 1 {
		return nil, false
	}
	return &m, true
}

// A WaitError says why a wait for a lock ended without the lock, and what the call waited for. Lock
// returns it when its context ends. It wraps the context's error. If and only if the client was not
// Connected when the wait ended, it also wraps [framework.ErrNotConnected]. So a service can
// distinguish a busy lock from an unreachable ZooKeeper, whether the outage began before or during
// the wait. A server that is silent is noticed after the connect timeout, or a quarter of the session
// timeout. If a wait ends before that, Ahead is -1 and BlockedBy is nil, because no reply came.
type WaitError struct {
	Path string // of the lock, as it was given to its constructor

	// AbsolutePath is the path in the ensemble, as that of a [framework.OpError]. For a Multi it has
	// the paths of all members.
	AbsolutePath string

	// Ahead is the number of contenders ahead, as far as the call saw; -1 if it saw none or the
	// lock has no queue.
	Ahead int
	// BlockedBy is the contender that the call waited for, and its Holder says whether that held the
	// lock. It is nil if the call saw none, and if it was the first in a semaphore's queue: it then waited for
	// the holders, whom Participants names. It shows the contender at the start of the call's wait for it.
	BlockedBy *Participant

	Err error // wraps the context's error
}

// Error names the contender that the call waited for, and why the wait ended.
func (e *WaitError) Error() string {
	var text strings.Builder
	text.WriteString("wait ended")
	if e.Ahead > 0 {
		fmt.Fprintf(&text, " behind %d", e.Ahead)
	}
	if b := e.BlockedBy; b != nil {
		fmt.Fprintf(&text, " (blocked by %s", e.absolute(b.Path))
		if m := b.Metadata; m != nil {
			fmt.Fprintf(&text, ", process %d on %s", m.PID, m.Host)
			if m.IsOwn() {
				text.WriteString(", which is this one")
			}
		}
		if b.Session == 0 && b.Err == nil {
			text.WriteString(", which belongs to no session: no lock will free it")
		}
		text.WriteString(")")
	}
	return text.String() + ": " + e.Err.Error()
}

// absolute returns the path in the ensemble of a path in the view of e.Path.
func (e *WaitError) absolute(path string) string {
	prefix, ok := strings.CutSuffix(e.AbsolutePath, e.Path)
	if !ok {
		return path
	}
	return prefix + path
}

// Unwrap returns Err.
func (e *WaitError) Unwrap() error { return e.Err }

// ErrorType returns the type of Err, as that of package zktel does.
func (e *WaitError) ErrorType() string { return errtype.Of(e.Err) }
