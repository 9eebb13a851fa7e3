package contender //nolint:testpackage // it tests what is not exported

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestTheLookupOfTheAddressIsBounded: no name server replies.
func TestTheLookupOfTheAddressIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		began := time.Now()
		if got := addressOf(silent, "host.invalid"); len(got) != 0 {
			t.Errorf("address %q of a host that does not resolve", got)
		}
		if took := time.Since(began); took > lookupLimit {
			t.Errorf("the lookup took %v, want %v at most", took, lookupLimit)
		}
	})
}
