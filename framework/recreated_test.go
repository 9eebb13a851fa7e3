package framework_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// A lostWrite is a write whose reply is lost.
type lostWrite struct {
	op fault.Op
	do func(ctx context.Context, c *framework.Client, path string) error
}

func lostWrites() map[string]lostWrite {
	remove := func(opts ...framework.DeleteOption) lostWrite {
		return lostWrite{fault.Delete, func(ctx context.Context, c *framework.Client, path string) error {
			return c.Delete(ctx, path, opts...)
		}}
	}
	set := func(version int32) lostWrite {
		return lostWrite{fault.SetData, func(ctx context.Context, c *framework.Client, path string) error {
			_, err := c.Set(ctx, path, []byte("ours"), version)
			return err
		}}
	}
	return map[string]lostWrite{
		"Set with any version":                    set(framework.AnyVersion),
		"Set with a version":                      set(0),
		"Delete with any version":                 remove(),
		"Delete with a version":                   remove(framework.AtVersion(0)),
		"Delete that is guaranteed":               remove(framework.Guaranteed()),
		"Delete that is guaranteed, with version": remove(framework.AtVersion(0), framework.Guaranteed()),
		"SetACL": {fault.SetACL, func(ctx context.Context, c *framework.Client, path string) error {
			_, err := c.SetACL(ctx, path, acl.ReadOnly(), 0)
			return err
		}},
	}
}

// loses has a write lose its reply while others act before the client reconnects, and
// returns the error of the write.
func (lw lostWrite) loses(t *testing.T, srv *zkserver.Server, action fault.Action, path string, others func(*framework.Client)) error {
	t.Helper()
	other := virtual(t, srv)
	g := new(gate)
	c := virtual(t, srv, framework.WithDialer(g.around(srv.Dial)))
	mustCreate(t, c, path, "first")
	lost := srv.Rules().Add(fault.Rule{Op: lw.op, Action: action})
	g.shut()
	failed := make(chan error, 1)
	go func() { failed <- lw.do(t.Context(), c, path) }()
	await(t, lost.Hit(), "the loss")
	synctest.Wait()
	others(other)
	g.open()
	err := <-failed
	<-time.After(time.Second) // what is done in the background
	return err
}

func TestASecondAttemptLeavesAnotherZnodeAlone(t *testing.T) {
	for name, lw := range lostWrites() {
		for _, action := range []fault.Action{fault.CutBefore, fault.DropReply} {
			t.Run(name+"/"+action.String(), func(t *testing.T) {
				virtually(t, func(t *testing.T, srv *zkserver.Server) {
					path := fresh(t)
					var created framework.Stat
					err := lw.loses(t, srv, action, path, func(other *framework.Client) {
						if err := other.Delete(t.Context(), path); err != nil && !errors.Is(err, framework.ErrNoNode) {
							t.Fatal(err)
						}
						mustCreate(t, other, path, "theirs", framework.StatTo(&created))
					})
					wantErr(t, "the write", err, framework.ErrUnknownOutcome)
					if framework.Retryable(err) {
						t.Errorf("%v is retryable", err)
					}
					c := virtual(t, srv)
					data, st, err := c.Get(t.Context(), path)
					if err != nil || string(data) != "theirs" || st.Czxid != created.Czxid || st.Version != 0 || st.Aversion != 0 {
						t.Errorf("%q, %+v, %v, want what others created", data, st, err)
					}
				})
			})
		}
	}
}

// No client has deleted the znode: the second attempt does what was asked for.
func TestASecondAttemptWritesTheSameZnode(t *testing.T) {
	for name, lw := range lostWrites() {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				if err := lw.loses(t, srv, fault.CutBefore, fresh(t), func(*framework.Client) {}); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A tree is deleted whoever adds to it meanwhile.
func TestDeleteTree_after_a_lost_reply(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		path := fresh(t)
		tree := lostWrite{fault.Delete, func(ctx context.Context, c *framework.Client, path string) error { return c.DeleteTree(ctx, path) }}
		err := tree.loses(t, srv, fault.DropReply, path, func(other *framework.Client) { mustCreate(t, other, path, "theirs") })
		if err != nil {
			t.Error(err)
		}
		if _, ok, err := virtual(t, srv).Exists(t.Context(), path); err != nil || ok {
			t.Errorf("exists %v, %v", ok, err)
		}
	})
}

// The znode that a background deletion means is the one that exists when it begins.
func TestADiscardLeavesAnotherZnodeAlone(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		path := fresh(t)
		other := virtual(t, srv)
		g := new(gate)
		c := virtual(t, srv, framework.WithDialer(g.around(srv.Dial)))
		mustCreate(t, c, path, "first")
		lost := srv.Rules().Add(fault.Rule{Op: fault.Delete, Action: fault.DropReply})
		g.shut()
		c.Discard(path)
		await(t, lost.Hit(), "the loss")
		synctest.Wait()
		mustCreate(t, other, path, "theirs")
		g.open()
		<-time.After(10 * time.Second)
		if _, ok, err := other.Exists(t.Context(), path); err != nil || !ok || c.PendingDeletes() > 0 {
			t.Errorf("exists %v, %v; %d deletions are pending", ok, err, c.PendingDeletes())
		}
	})
}
