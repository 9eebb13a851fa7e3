package framework_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// createAtEpoch creates an ephemeral znode with an epoch, and returns the version and the Stat.
func createAtEpoch(t testing.TB, c *framework.Client, path string, opts ...framework.CreateOption) (int32, framework.Stat, error) {
	t.Helper()
	var version int32
	var st framework.Stat
	opts = append(opts, framework.WithEpoch(&version), framework.StatTo(&st), framework.Ephemeral(), framework.KnownBySession())
	created, err := c.Create(t.Context(), path, []byte("same"), opts...)
	if err == nil && created != path {
		t.Errorf("created %q, want %q", created, path)
	}
	return version, st, err
}

func mustCreateAtEpoch(t testing.TB, c *framework.Client, path string) (int32, framework.Stat) {
	t.Helper()
	version, st := must.Get2(createAtEpoch(t, c, path, framework.WithParents()))(t)
	return version, st
}

// wantEpoch fails the test unless the epoch of the path has the version.
func wantEpoch(t testing.TB, c *framework.Client, path string, version int32) {
	t.Helper()
	st, ok, err := c.Exists(t.Context(), zkpath.Epoch(path))
	if err != nil || !ok || st.Version != version || st.EphemeralOwner != 0 {
		t.Errorf("epoch %+v (%v, %v), want version %d of a persistent znode", st, ok, err, version)
	}
}

func TestEpochDiffersForEachZnode(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		clients := []*framework.Client{virtual(t, srv), virtual(t, srv)}
		var former int32
		for i := range 4 {
			c := clients[i%2]
			version, st := mustCreateAtEpoch(t, c, "/a/b/one")
			if version != former+1 {
				t.Errorf("epoch %d after %d", version, former)
			}
			former = version
			wantEpoch(t, c, "/a/b/one", version)
			wantStat(t, c, "/a/b/one", st)
			_, _, err := createAtEpoch(t, clients[1-i%2], "/a/b/one")
			wantErr(t, "Create of a znode that exists", err, framework.ErrNodeExists)
			wantEpoch(t, c, "/a/b/one", version)
			check(t, c.Delete(t.Context(), "/a/b/one", framework.AtEpoch(version), framework.CreatedBy(st.Czxid)))
		}
	})
}

func TestEpochNeedsAParent(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		wantErr(t, "Create without WithParents", last(createAtEpoch(t, c, "/missing/one")), framework.ErrNoNode)
		mustCreate(t, c, "/present", "")
		wantErr(t, "Create below an existing parent", last(createAtEpoch(t, c, "/present/one")), nil)
		if got := srv.Paths(); slices.ContainsFunc(got, func(p string) bool { return strings.HasPrefix(p, "/missing") }) {
			t.Errorf("znodes %q, want none below /missing", got)
		}
	})
}

// TestEpochLiesInTheNamespace also has a transaction of the view check it.
func TestEpochLiesInTheNamespace(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		root := virtual(t, srv)
		view := must.Get(root.Namespace("ns"))(t)
		version, _ := mustCreateAtEpoch(t, view, "/one")
		wantEpoch(t, root, "/ns/one", version)
		mustCreate(t, view, "/data", "")
		write := func(version int32) error {
			return last(view.Txn(t.Context(), framework.OpSet("/data", nil, framework.AnyVersion), framework.OpCheck("/one", framework.AnyVersion, framework.AtEpoch(version))))
		}
		check(t, write(version))
		for version, want := range map[int32]error{version + 1: framework.ErrBadVersion, version - 1: framework.ErrBadVersion} {
			culprit := new(framework.TxnError)
			err := write(version)
			if !errors.As(err, &culprit) || culprit.Index != 1 || culprit.Path != "/one" || culprit.Op != "check" {
				t.Errorf("transaction at another epoch: %v", err)
			}
			wantErr(t, "transaction at another epoch", err, want)
		}
	})
}

// TestEpochChangesWhileAReplyIsLost has an operator write to the epoch, or delete it, before the
// client looks for its znode: the znode is created again, with an epoch of its own. Else it is found.
func TestEpochChangesWhileAReplyIsLost(t *testing.T) {
	for name, change := range map[string]func(context.Context, *framework.Client, string) error{
		"left": func(context.Context, *framework.Client, string) error { return nil },
		"written": func(ctx context.Context, c *framework.Client, path string) error {
			return last(c.Set(ctx, path, nil, framework.AnyVersion))
		},
		"deleted": func(ctx context.Context, c *framework.Client, path string) error { return c.Delete(ctx, path) },
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			c, operator := virtual(t, srv), virtual(t, srv)
			former, st := mustCreateAtEpoch(t, c, "/changed/one")
			must.OK(t, c.Delete(t.Context(), "/changed/one", framework.AtEpoch(former), framework.CreatedBy(st.Czxid)))
			lost := srv.Rules().Add(fault.Rule{Op: fault.Multi, Path: "/changed/one", Action: fault.DropReply})
			srv.Refuse()
			var version int32
			done := make(chan error, 1)
			go func() {
				var err error
				version, st, err = createAtEpoch(t, c, "/changed/one")
				done <- err
			}()
			await(t, lost.Hit(), "the create")
			first, _, _ := operator.Exists(t.Context(), "/changed/one")
			must.OK(t, change(t.Context(), operator, zkpath.Epoch("/changed/one")))
			srv.Accept()
			must.OK(t, <-done)
			if another := st.Czxid > first.Czxid; another != (name != "left") {
				t.Errorf("czxid %d after %d: another znode: %v", st.Czxid, first.Czxid, another)
			}
			wantStat(t, c, "/changed/one", st)
			wantEpoch(t, c, "/changed/one", version)
			check(t, last(c.Txn(t.Context(), framework.OpCheck("/changed/one", framework.AnyVersion, framework.AtEpoch(version)))))
		})
	}
}

// TestEpochHasTheACLOfTheZnode also refuses an ACL with which no client could set the epoch.
func TestEpochHasTheACLOfTheZnode(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		mustCreate(t, c, "/acl", "")
		usable := acl.Entry{Perms: acl.Read | acl.Write, Scheme: "world", ID: "anyone"}
		for _, opts := range [][]framework.CreateOption{
			{framework.WithACL(usable)},
			nil, // the epoch keeps the ACL
		} {
			_, st, err := createAtEpoch(t, c, "/acl/one", opts...)
			must.OK(t, err)
			acl, _, err := c.ACL(t.Context(), zkpath.Epoch("/acl/one"))
			if err != nil || len(acl) != 1 || acl[0] != usable {
				t.Errorf("ACL %+v, %v; want %+v", acl, err, usable)
			}
			must.OK(t, c.Delete(t.Context(), "/acl/one", framework.CreatedBy(st.Czxid)))
		}
		_, _, err := createAtEpoch(t, c, "/acl/two", framework.WithACL(acl.ReadOnly()...))
		wantText(t, err, "/acl/two.docent-epoch: must permit to read and to write")
		if names := children(t, c, "/acl"); len(names) != 1 {
			t.Errorf("znodes %q, want the first epoch alone", names)
		}
	})
}

func TestEpochThatMayNotBeWritten(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		mustCreate(t, c, "/refused", "")
		mustCreate(t, c, zkpath.Epoch("/refused/one"), "", framework.WithACL(acl.ReadOnly()...))
		wantErr(t, "Create", last(createAtEpoch(t, c, "/refused/one")), framework.ErrNoAuth)
		if _, ok, err := c.Exists(t.Context(), "/refused/one"); err != nil || ok || c.PendingDeletes() != 0 {
			t.Errorf("the znode exists: %v, %v; %d deletions pending", ok, err, c.PendingDeletes())
		}
	})
}

// TestDeleteAtEpochFindsItsZnode has an operator change the epoch, or the reply be lost.
func TestDeleteAtEpochFindsItsZnode(t *testing.T) {
	epoch := zkpath.Epoch("/found/one")
	for name, change := range map[string]func(t *testing.T, srv *zkserver.Server, operator *framework.Client){
		"nothing happened": func(*testing.T, *zkserver.Server, *framework.Client) {},
		"epoch written": func(t *testing.T, _ *zkserver.Server, operator *framework.Client) {
			must.Get(operator.Set(t.Context(), epoch, nil, framework.AnyVersion))(t)
		},
		"epoch deleted": func(t *testing.T, _ *zkserver.Server, operator *framework.Client) {
			must.OK(t, operator.Delete(t.Context(), epoch))
		},
		"reply lost": func(_ *testing.T, srv *zkserver.Server, _ *framework.Client) {
			srv.Rules().Add(fault.Rule{Op: fault.Multi, Path: "/found/one", Action: fault.DropReply})
		},
		"request lost": func(_ *testing.T, srv *zkserver.Server, _ *framework.Client) {
			srv.Rules().Add(fault.Rule{Op: fault.Multi, Path: "/found/one", Action: fault.CutBefore})
		},
	} {
		for _, discard := range []bool{false, true} {
			runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
				c, operator := virtual(t, srv), virtual(t, srv)
				version, st := mustCreateAtEpoch(t, c, "/found/one")
				change(t, srv, operator)
				opts := []framework.DeleteOption{framework.AtEpoch(version), framework.CreatedBy(st.Czxid), framework.Idempotent()}
				if discard {
					c.Discard("/found/one", opts...)
					zktest.Eventually(t, patience, "the deletion is done", func() bool { return c.PendingDeletes() == 0 })
				} else if err := c.Delete(t.Context(), "/found/one", opts...); err != nil {
					t.Error(err)
				}
				wantExists(t, operator, "/found/one", false)
			})
		}
	}
}

// TestDeleteAtEpochLeavesTheNextZnodeAlone has another client create the next znode between the
// client's look and its deletion.
func TestDeleteAtEpochLeavesTheNextZnodeAlone(t *testing.T) {
	for _, discard := range []bool{false, true} {
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			c, other := virtual(t, srv), virtual(t, srv)
			version, st := mustCreateAtEpoch(t, c, "/next/one")
			stuck := srv.Rules().Add(fault.Rule{Op: fault.Multi, Path: "/next/one", Action: fault.HoldRequest})
			opts := []framework.DeleteOption{framework.AtEpoch(version), framework.CreatedBy(st.Czxid)}
			deleted := make(chan error, 1)
			go func() {
				if discard {
					c.Discard("/next/one", opts...)
					deleted <- framework.ErrNoNode
				} else {
					deleted <- c.Delete(t.Context(), "/next/one", opts...)
				}
			}()
			await(t, stuck.Hit(), "the deletion")
			must.OK(t, other.Delete(t.Context(), "/next/one"))
			next, _ := mustCreateAtEpoch(t, other, "/next/one")
			stuck.Release()
			wantErr(t, "Delete", <-deleted, framework.ErrNoNode)
			zktest.Eventually(t, patience, "the deletion is done", func() bool { return c.PendingDeletes() == 0 })
			wantErr(t, "the next znode", last(other.Txn(t.Context(), framework.OpCheck("/next/one", framework.AnyVersion, framework.AtEpoch(next)))), nil)
		})
	}
}
