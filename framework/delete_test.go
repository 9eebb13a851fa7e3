package framework_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func TestBackgroundDeletionsAreSentSeveralAtOnce(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		const orphans, roundTrip, atMost = 1000, 20 * time.Millisecond, time.Second
		proxy := newProxy(t, srv)
		c := connect(t, srv.Addr(), framework.WithDialer(proxy.Dial))
		var paths []string
		for range orphans {
			paths = append(paths, mustCreate(t, c, "/orphans/node-", "", framework.Ephemeral(), framework.Sequential(), framework.WithParents()))
		}
		proxy.SetLatency(roundTrip)
		start := time.Now()
		bound := c.InSession(c.Session().ID) // else each deletion takes two round trips
		for _, path := range paths {
			bound.Discard(path)
		}
		zktest.Eventually(t, time.Minute, "the deletions are done", func() bool { return c.PendingDeletes() == 0 })
		took := time.Since(start)
		t.Logf("%d deletions at %v each took %v", orphans, roundTrip, took)
		if took > atMost {
			t.Errorf("%d deletions at %v each took %v, want at most %v", orphans, roundTrip, took, atMost)
		}
	})
}

// TestDeleteWhoseEndIsAwaitedIsNeverDropped has more deletions pending than a client keeps.
func TestDeleteWhoseEndIsAwaitedIsNeverDropped(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		mustCreate(t, c, "/awaited", "")
		disconnect(srv)
		bound := c.InSession(c.Session().ID)
		for i := range framework.MaxPendingDeletes {
			bound.Discard("/none", framework.CreatedBy(int64(i+1)))
		}
		bound.Discard("/none", framework.CreatedBy(framework.MaxPendingDeletes+1))
		wantEqual(t, "pending deletions", c.PendingDeletes(), framework.MaxPendingDeletes)
		over := make(chan struct{})
		bound.Discard("/awaited", framework.WhenOver(func(bool) { close(over) }))
		wantOpen(t, over, "the deletion was over before the znode was gone")
		wantErr(t, "Close without a server", c.Close(), framework.ErrUnknownOutcome)
		await(t, over, "the end of the deletion")
	})
}

// TestDeleteWhoseCheckIsRefused has a deletion's request lost, and the reads refused that show whether it
// had an effect. The session lives, so contenders wait for the znode.
func TestDeleteWhoseCheckIsRefused(t *testing.T) {
	t.Parallel()
	for _, read := range []fault.Op{fault.Sync, fault.Exists} {
		for _, code := range []fault.Code{fault.Unimplemented, fault.Throttled, fault.AuthRequired} {
			for _, waits := range []bool{true, false} {
				runVirtually(t, fmt.Sprintf("%v/%v/%v", read, code, waits), func(t *testing.T, srv *zkserver.Server) {
					c := virtual(t, srv)
					path := mustCreate(t, c, "/refused", "", framework.Ephemeral())
					bound := c.InSession(c.Session().ID)
					srv.Rules().Add(fault.Rule{Op: fault.Delete, Action: fault.CutBefore})
					srv.Rules().Add(fault.Rule{Op: read, Action: fault.Refuse, Code: code})
					if waits {
						_ = bound.Delete(t.Context(), path, framework.Guaranteed()) // or the client goes on
					} else {
						bound.Discard(path)
					}
					sleep(time.Minute)
					wantExists(t, c, path, false)
					wantEqual(t, "pending deletions", c.PendingDeletes(), 0)
				})
			}
		}
	}
}

// A server reaps a container once its last child is gone, which DeleteTree sees to.
func TestDeleteTree_while_another_client_deletes(t *testing.T) {
	t.Parallel()
	zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
		tr, route, other, path := newTraces(), env.Route(t), env.Client(t), fresh(t)
		c := route.Client(t, framework.WithTracerProvider(tr.provider))
		mustCreate(t, other, path+"/leaf", "")
		last := route.Rules().Add(fault.Rule{Op: fault.Delete, Path: path, Action: fault.HoldRequest, Skip: 1})
		ctx := tr.caller(t)
		done := background(func() error { return c.DeleteTree(ctx, path) })
		await(t, last.Hit(), "the deletion of the emptied znode")
		_ = other.Delete(t.Context(), path) // or a real server has reaped it
		last.Release()
		check(t, <-done)
		wantSpans(t, tr.take(t, ctx, c), "delete (caller, unset) db.response.status_code=-111 zookeeper.node.path="+path+"\n"+
			"getChildren (caller, unset) zookeeper.node.path="+path+"\n"+
			"delete (caller, unset) zookeeper.node.path="+path+"/leaf\n"+
			"delete (caller, unset) db.response.status_code=-101 zookeeper.node.path="+path+"\n")
	})
}

// A fragile connection closes itself behind the reply to an armed exists.
type fragile struct {
	net.Conn
	armed *atomic.Bool
	asked atomic.Bool
}

func (c *fragile) Write(p []byte) (int, error) {
	if len(p) >= 12 && proto.Opcode(binary.BigEndian.Uint32(p[8:])) == proto.OpExists {
		c.asked.Store(c.armed.Load())
	}
	return c.Conn.Write(p)
}

func (c *fragile) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.asked.CompareAndSwap(true, false) {
		c.armed.Store(false)
		_ = c.Conn.Close()
	}
	return n, err
}

// TestADeletionIsSentAtOnceOrNotAtAll: the connection ends as soon as the client has read the znode that it
// is to delete, and another client has another znode at the path when the next connection comes. The
// deletion must not have waited for that connection.
func TestADeletionIsSentAtOnceOrNotAtAll(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		other := virtual(t, srv)
		var armed, away atomic.Bool
		c := must.Get(framework.NewClient(srv.Addr(), framework.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			if away.Load() {
				return nil, errors.New("the network is away")
			}
			conn, err := srv.Dial(ctx, network, addr)
			return &fragile{Conn: conn, armed: &armed}, err
		})))(t)
		defer c.Close()
		for range 100 {
			var st framework.Stat
			must.Get(c.Create(t.Context(), "/z", nil, framework.StatTo(&st)))(t)
			armed.Store(true)
			away.Store(true)
			deleted := background(func() error { return c.Delete(t.Context(), "/z", framework.CreatedBy(st.Czxid)) })
			synctest.Wait()
			if armed.Load() {
				t.Fatal("the znode was not read")
			}
			must.Get(other.Txn(t.Context(), framework.OpDelete("/z", framework.AnyVersion), framework.OpCreate("/z", nil)))(t)
			away.Store(false)
			wantErr(t, "Delete", <-deleted, framework.ErrNoNode)
			must.OK(t, other.Delete(t.Context(), "/z")) // it is still there
		}
	})
}

// TestOpDeleteCreatedBy: a transaction deletes the znode of a czxid, and none that replaced it.
func TestOpDeleteCreatedBy(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		var first, second framework.Stat
		must.Get(c.Create(t.Context(), "/z", nil, framework.StatTo(&first)))(t)
		must.OK(t, c.Delete(t.Context(), "/z"))
		must.Get(c.Create(t.Context(), "/z", nil, framework.StatTo(&second)))(t)
		other := framework.OpCreate("/other", nil)
		_, err := c.Txn(t.Context(), other, framework.OpDelete("/z", 0, framework.CreatedBy(first.Czxid)))
		var refused *framework.TxnError
		if !errors.As(err, &refused) || refused.Index != 1 || refused.Path != "/z" || !errors.Is(err, framework.ErrNoNode) {
			t.Errorf("Txn: %v, want a TxnError of operation 1 that wraps ErrNoNode", err)
		}
		must.Get(c.Txn(t.Context(), other, framework.OpDelete("/z", 0, framework.CreatedBy(second.Czxid))))(t)
	})
}

// TestDeleteCreatedByWithoutRead: servers from 3.8.4 and 3.9.2 on refuse an exists without the permission to
// read. A deletion that identifies its znode returns that refusal.
func TestDeleteCreatedByWithoutRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zkserver.Run(t, zkserver.WithVersion("3.9.6"))
		c := virtual(t, srv)
		var st framework.Stat
		must.Get(c.Create(t.Context(), "/z", nil, framework.StatTo(&st), unreadable))(t)
		ctx := within(t, time.Minute)
		err := c.Delete(ctx, "/z", framework.CreatedBy(st.Czxid))
		_, txnErr := c.Txn(ctx, framework.OpDelete("/z", 0, framework.CreatedBy(st.Czxid)))
		for _, err := range []error{err, txnErr} {
			if !errors.Is(err, framework.ErrNoAuth) || errors.Is(err, framework.ErrUnknownOutcome) {
				t.Errorf("%v, want ErrNoAuth and a known outcome", err)
			}
		}
	})
}

// A client discards its session's own znode even if it may not read it, and no other znode that is at the path by now.
func TestDiscardWithoutRead(t *testing.T) {
	for name, byEpoch := range map[string]bool{"by the czxid": false, "at an epoch": true} {
		for _, replaced := range []bool{false, true} {
			runVirtually(t, fmt.Sprintf("%s, replaced %v", name, replaced), func(t *testing.T, srv *zkserver.Server) {
				c, other := virtual(t, srv), virtual(t, srv)
				var st framework.Stat
				var version int32
				opts, which := knownBySession(framework.StatTo(&st)), []framework.DeleteOption{}
				mustCreate(t, c, "/z.docent-epoch", "")
				if byEpoch {
					opts = append(opts, framework.WithEpoch(&version))
				}
				mustCreate(t, c, "/z", "", append(opts, unreadable)...)
				if byEpoch {
					which = append(which, framework.AtEpoch(version))
				}
				if replaced {
					check(t, other.Delete(t.Context(), "/z"))
					mustCreate(t, other, "/z", "", framework.Ephemeral(), unreadable)
				}
				over := make(chan bool, 1)
				c.InSession(c.Session().ID).Discard("/z", append(which,
					framework.CreatedBy(st.Czxid), framework.WhenOver(func(gone bool) { over <- gone }))...)
				sleep(time.Minute)
				wantEqual(t, "the znode is there", slices.Contains(srv.Paths(), "/z"), replaced)
				wantEqual(t, "the deletion is over", len(over) == 1 && <-over, !replaced || byEpoch)
			}, zkserver.WithVersion("3.9.6"))
		}
	}
}
