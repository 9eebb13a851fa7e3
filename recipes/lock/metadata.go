package lock

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"sync"
	"time"
)

// Metadata is what a contender's znode tells about who made it, as JSON. Nobody
// decides by it; it is for people who look for the holder of a lock.
type Metadata struct {
	Version int       `json:"docent"`          // of this format, 1
	Owner   string    `json:"owner,omitempty"` // name of the [Owner], "" for a goroutine
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Attempt string    `json:"attempt,omitempty"` // names the attempt, where the znode's name doesn't
	Since   time.Time `json:"since"`             // when the attempt began, by the contender's clock
	Data    []byte    `json:"data,omitempty"`

	// Traceparent leads to the trace of the call that made the znode, as W3C
	// Trace Context writes it: see [WithTraceparent].
	Traceparent string `json:"traceparent,omitempty"`
}

// metadataVersion is the present version of the format.
const metadataVersion = 1

// nodeData returns what the znode of p's attempt is to hold. by is what telemetry
// follows of the call that makes it.
func (cfg *config) nodeData(p party, by *acquiring) []byte { return cfg.attemptData(p, "", by) }

// attemptData is nodeData that names the attempt.
func (cfg *config) attemptData(p party, attempt string, by *acquiring) []byte {
	switch {
	case cfg.bare && cfg.data != nil:
		return cfg.data
	case cfg.bare:
		return localAddress()
	}
	if cfg.untraced {
		by = nil
	}
	m := Metadata{
		Version: metadataVersion,
		Owner:   p.owner.String(),
		Host:    hostname(),
		PID:     os.Getpid(),
		Attempt: attempt,
		Since:   time.Now().UTC().Truncate(time.Millisecond),
		Data:    cfg.data,

		Traceparent: by.traceparent(),
	}
	if m.Owner == "" && m.Attempt == "" && m.Traceparent == "" {
		return cfg.undated(m).dated(m.Since)
	}
	return m.encode()
}

func (m Metadata) encode() []byte {
	encoded, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings, numbers and bytes always encode
	}
	return encoded
}

// An undated is encoded metadata without its time, which is all that the attempts
// of a lock differ in where their goroutines are the owners.
type undated struct{ before, behind []byte }

// undatedOnce returns a function that has the metadata encoded when it is called
// first, and returns that.
func undatedOnce() func(Metadata) undated {
	var once sync.Once
	var u undated
	return func(m Metadata) undated {
		once.Do(func() {
			m.Since = time.Time{}
			encoded := m.encode()
			at := bytes.Index(encoded, []byte(sinceKey+noTime)) + len(sinceKey) // no text of the user's has a bare quote
			u = undated{encoded[:at], encoded[at+len(noTime):]}
		})
		return u
	}
}

// How the zero time is encoded.
const (
	sinceKey = `"since":"`
	noTime   = "0001-01-01T00:00:00Z"
)

// dated returns the metadata with the time.
func (u undated) dated(t time.Time) []byte {
	data := make([]byte, 0, len(u.before)+len(time.RFC3339Nano)+len(u.behind))
	data = t.AppendFormat(append(data, u.before...), time.RFC3339Nano)
	return append(data, u.behind...)
}

// decodeMetadata returns what a znode's data tells, if it has this format.
func decodeMetadata(data []byte) (*Metadata, bool) {
	if len(data) == 0 || data[0] != '{' {
		return nil, false
	}
	var m Metadata
	if err := json.Unmarshal(data, &m); err != nil || m.Version < 1 {
		return nil, false
	}
	return &m, true
}

var hostname = sync.OnceValue(func() string { //nolint:gochecknoglobals // a process is on one host
	name, _ := os.Hostname() // a host without a name is shown without one
	return name
})

// localAddress returns the host's address as text, or nothing if it does not
// resolve: Curator's default data.
var localAddress = sync.OnceValue(func() []byte { //nolint:gochecknoglobals // as hostname
	addrs, err := net.LookupIP(hostname())
	if err != nil || len(addrs) == 0 {
		return []byte{}
	}
	return []byte(addrs[0].String())
})
