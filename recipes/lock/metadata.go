package lock

import (
	"net"
	"os"
	"sync"
	"time"

	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/lease"
)

// nodeData returns what the znode of c's attempt is to hold. by is what telemetry
// follows of the call that makes it.
func (cfg *config) nodeData(c caller, by *telemetry.Acquire) []byte {
	return cfg.attemptData(c, "", by)
}

// attemptData is nodeData that names the attempt.
func (cfg *config) attemptData(c caller, attempt string, by *telemetry.Acquire) []byte {
	switch {
	case cfg.noMetadata && cfg.data != nil:
		return cfg.data
	case cfg.noMetadata:
		return localAddress()
	}
	if cfg.noTraceparent {
		by = nil
	}
	m := Metadata{
		Version: lease.MetadataVersion,
		Owner:   c.owner.String(),
		Host:    hostname(),
		PID:     os.Getpid(),
		Attempt: attempt,
		Since:   time.Now().UTC().Truncate(time.Millisecond),
		Data:    cfg.data,

		Traceparent: by.Traceparent(),
	}
	return m.Encode()
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
