package framework_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
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

// A znode above the missing parents that may not be read exists, whatever a server of any version replies
// to exists.
func TestCreate_makes_parents_below_a_znode_that_may_not_be_read(t *testing.T) {
	for _, version := range []string{"3.5.10", zkserver.DefaultVersion, "3.8.4", "3.9.6"} {
		t.Run(version, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				c := virtual(t, srv)
				must.Get(c.Create(t.Context(), "/hidden", nil, framework.WithACL(acl.Entry{Perms: acl.All &^ acl.Read, Scheme: "world", ID: "anyone"})))(t)
				if _, err := c.Create(t.Context(), "/hidden/a/b/c/n", nil, framework.WithParents()); err != nil {
					t.Error(err)
				}
			}, zkserver.WithVersion(version))
		})
	}
}
