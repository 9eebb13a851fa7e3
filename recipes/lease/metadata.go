package lease

import (
	"encoding/json"
	"time"
)

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
}

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
	if err := json.Unmarshal(data, &m); err != nil || m.Version < 1 {
		return nil, false
	}
	return &m, true
}
