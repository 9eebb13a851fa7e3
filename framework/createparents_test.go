package framework_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

// A create whose parent is missing takes one round trip more. A search for the first parent that
// exists begins only if the parent of the parent is missing, too.
func TestCreate_makes_missing_parents_in_few_requests(t *testing.T) {
	const roundTrip = time.Millisecond
	create, exists := fault.Create, fault.Exists
	for path, want := range map[string]struct {
		roundTrips int
		requests   []fault.Op
	}{
		"/n":       {1, []fault.Op{create}},
		"/a/n":     {2, []fault.Op{create, create, create}},
		"/a/b/n":   {4, []fault.Op{create, create, create, create, create, create}},
		"/a/b/c/n": {6, []fault.Op{create, create, create, exists, create, create, create, create}},
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zkserver.Run(t)
				proxy := zkproxy.RunPipe(t, func(ctx context.Context) (net.Conn, error) { return srv.Dial(ctx, "tcp", srv.Addr()) })
				proxy.SetLatency(roundTrip)
				c := connect(t, srv.Addr(), framework.WithDialer(proxy.Dial))
				must.Get2(c.Exists(t.Context(), "/"))(t) // the first create of a session asks what the server has applied
				proxy.ResetRequests()
				begun := time.Now()
				must.Get(c.Create(t.Context(), path, nil, framework.WithParents()))(t)
				if took := time.Since(begun); took != time.Duration(want.roundTrips)*roundTrip {
					t.Errorf("took %v, want %d round trips of %v", took, want.roundTrips, roundTrip)
				}
				var sent []fault.Op
				for _, r := range proxy.Requests() {
					sent = append(sent, r.Op)
				}
				if !slices.Equal(sent, want.requests) {
					t.Errorf("sent %v, want %v", sent, want.requests)
				}
			})
		})
	}
}
