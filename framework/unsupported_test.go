package framework_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// needing are calls that need an operation which some servers do not know, and what an error names.
func needing() map[string]struct {
	op    proto.Opcode
	names string
	call  func(ctx context.Context, c *framework.Client) error
} {
	creates := func(path string, opts ...framework.CreateOption) func(context.Context, *framework.Client) error {
		return func(ctx context.Context, c *framework.Client) error {
			_, err := c.Create(ctx, path, nil, append(opts, framework.Idempotent())...)
			return err
		}
	}
	return map[string]struct {
		op    proto.Opcode
		names string
		call  func(ctx context.Context, c *framework.Client) error
	}{
		"create":    {proto.OpCreate2, "create2, which ZooKeeper has since 3.5", creates("/created")},
		"container": {proto.OpCreateContainer, "containers, which ZooKeeper has since 3.5.1", creates("/container", framework.Container())},
		"TTL":       {proto.OpCreateTTL, "since 3.5.3 with extendedTypesEnabled=true", creates("/ttl", framework.TTL(time.Hour))},
		"several reads": {proto.OpMultiRead, "multiRead, which ZooKeeper has since 3.6", func(ctx context.Context, c *framework.Client) error {
			_, errs := c.GetEach(ctx, slices.Repeat([]string{"/", "/zookeeper"}, 3)...) // more than are read one by one
			return errors.Join(errs...)
		}},
		"recursive watch": {proto.OpAddWatch, "addWatch, which ZooKeeper has since 3.6", func(ctx context.Context, c *framework.Client) error {
			w, err := c.WatchTree(ctx, "/")
			if err == nil {
				w.Close()
			}
			return err
		}},
		"ephemerals": {proto.OpGetEphemerals, "getEphemerals, which ZooKeeper has since 3.6", func(ctx context.Context, c *framework.Client) error {
			return last(c.Ephemerals(ctx, "/"))
		}},
		"identities": {proto.OpWhoAmI, "whoAmI, which ZooKeeper has since 3.7", func(ctx context.Context, c *framework.Client) error {
			return last(c.WhoAmI(ctx))
		}},
	}
}

// A call that needs an operation which the server does not know says so, each time: the next server may
// know it.
func TestErrUnsupported_is_of_one_call(t *testing.T) {
	for name, tc := range needing() {
		runSynctest(t, name, func(t *testing.T) {
			srv := zkserver.Run(t, zkserver.WithVersion("3.9.6"))
			old := &oldServer{dial: srv.Dial, unknown: []uint32{uint32(tc.op)}}
			c := connect(t, srv.Addr(), framework.WithDialer(old.Dial))
			for range 3 {
				synctest.Wait() // the server closes the connection after its reply
				must.OK(t, c.AwaitConnected(t.Context()))
				err := tc.call(t.Context(), c)
				wantErr(t, name, err, framework.ErrUnsupported)
				if err == nil || !strings.Contains(err.Error(), tc.names) || !strings.Contains(err.Error(), srv.Addr()) {
					t.Errorf("%v, want it to name %q and the server", err, tc.names)
				}
			}
			wantEqual(t, "requests that the server does not know", old.asked.Load(), 3)
			old.renewed.Store(true)
			synctest.Wait()
			wantErr(t, "at a newer server", tc.call(t.Context(), c), nil)
		})
	}
}

// A connection that ends instead of a reply says nothing about what the server knows, however often.
func TestEndedConnections_teach_nothing(t *testing.T) {
	for name, tc := range needing() {
		runSynctest(t, name, func(t *testing.T) {
			srv := zkserver.Run(t, zkserver.WithVersion("3.9.6"))
			c := virtual(t, srv)
			srv.Rules().Add(fault.Rule{Op: fault.OpOf(int32(tc.op)), Action: fault.CutBefore, Times: 3})
			wantErr(t, name, tc.call(t.Context(), c), nil)
			wantErr(t, "the next call", tc.call(t.Context(), c), nil)
			mustCreate(t, c, "/above/below", "", framework.WithParents())
			must.OK(t, c.Delete(t.Context(), "/above/below"))
			<-time.After(10 * time.Minute)
			wantExists(t, c, "/above", false) // a container, which the server has removed
		})
	}
}
