package contender

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	"github.com/docent-go/docent/recipes/internal/telemetry"
	"github.com/docent-go/docent/recipes/lease"
)

// Metadata returns the metadata of a contender of this process, which starts now. owner and party
// are those of [OwnerOf]. by is the telemetry of the call, for the traceparent; it may be nil.
func Metadata(owner, party string, data []byte, by *telemetry.Acquire) lease.Metadata {
	return lease.Metadata{
		Version: lease.MetadataVersion,
		Owner:   owner,
		Host:    hostname(),
		PID:     os.Getpid(),
		Since:   time.Now().UTC().Truncate(time.Millisecond),
		Data:    data,

		Traceparent: by.Traceparent(),
		Party:       party,
	}
}

var hostname = sync.OnceValue(func() string { //nolint:gochecknoglobals // a process is on one host
	name, _ := os.Hostname() // a host without a name is shown without one
	return name
})

// LocalAddress returns the host's address as text, or nothing if the host's name does not resolve soon:
// Curator's default data. The first call makes the lookup.
var LocalAddress = sync.OnceValue(func() []byte { //nolint:gochecknoglobals // as hostname
	return addressOf(net.DefaultResolver, hostname())
})

// lookupLimit bounds the lookup, because acquires wait for it, whose contexts may be short.
const lookupLimit = 200 * time.Millisecond

func addressOf(r *net.Resolver, host string) []byte {
	ctx, cancel := context.WithTimeout(context.Background(), lookupLimit)
	defer cancel()
	addrs, err := r.LookupIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return []byte{}
	}
	return []byte(addrs[0].String())
}
