package framework_test

import (
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

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
			if err != nil {
				t.Fatal(err)
			}
			acl, _, err := c.ACL(t.Context(), framework.EpochOf("/acl/one"))
			if err != nil || len(acl) != 1 || acl[0] != usable {
				t.Errorf("ACL %+v, %v; want %+v", acl, err, usable)
			}
			must.OK(t, c.Delete(t.Context(), "/acl/one", framework.CreatedBy(st.Czxid)))
		}
		_, _, err := createAtEpoch(t, c, "/acl/two", framework.WithACL(acl.ReadOnly()...))
		if err == nil || !strings.Contains(err.Error(), "/acl/two.docent-epoch: must permit to read and to write") {
			t.Errorf("Create with an epoch that no client could set: %v", err)
		}
		if names := children(t, c, "/acl"); len(names) != 1 {
			t.Errorf("znodes %q, want the first epoch alone", names)
		}
	})
}

func TestEpochThatMayNotBeWritten(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := virtual(t, srv)
		mustCreate(t, c, "/refused", "")
		mustCreate(t, c, framework.EpochOf("/refused/one"), "", framework.WithACL(acl.ReadOnly()...))
		_, _, err := createAtEpoch(t, c, "/refused/one")
		wantErr(t, "Create", err, framework.ErrNoAuth)
		if _, ok, err := c.Exists(t.Context(), "/refused/one"); err != nil || ok || c.PendingDeletes() != 0 {
			t.Errorf("the znode exists: %v, %v; %d deletions pending", ok, err, c.PendingDeletes())
		}
	})
}

func TestEpochOptionsThatDoNotFit(t *testing.T) {
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, version, names := virtual(t, srv), int32(0), []string(nil)
		epoch := framework.WithEpoch(&version)
		for what, err := range map[string]error{
			"option WithEpoch: must be": second(c.Create(t.Context(), "/x", nil, framework.Ephemeral(), epoch)),
			"and not with ListTo":       second(c.Create(t.Context(), "/x", nil, knownByData(epoch, framework.ListTo(&names))...)),
			"options: must be among":    second(c.Txn(t.Context(), framework.OpCreate("/x", nil, knownByData(epoch)...))),
			"an epoch has no epoch":     second(c.Create(t.Context(), framework.EpochOf("/x"), nil, knownByData(epoch)...)),
			"combined with CreatedBy":   c.Delete(t.Context(), "/x", framework.AtEpoch(1)),
			"combined with AtVersion":   c.Delete(t.Context(), "/x", framework.AtEpoch(1), framework.CreatedBy(1), framework.AtVersion(1)),
		} {
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("error %v, want one that says %q", err, what)
			}
		}
		for _, path := range []string{"/x", framework.EpochOf("/x")} {
			if _, ok, err := c.Exists(t.Context(), path); err != nil || ok {
				t.Errorf("%s exists: %v, %v", path, ok, err)
			}
		}
	})
}

// TestDeleteAtEpochFindsItsZnode has an operator change the epoch, or the reply be lost.
func TestDeleteAtEpochFindsItsZnode(t *testing.T) {
	epoch := framework.EpochOf("/found/one")
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
			t.Run(name, func(t *testing.T) {
				virtually(t, func(t *testing.T, srv *zkserver.Server) {
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
					if _, ok, err := operator.Exists(t.Context(), "/found/one"); err != nil || ok {
						t.Errorf("exists %v, %v", ok, err)
					}
				})
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
			if _, err := other.Txn(t.Context(), framework.OpAtEpoch("/next/one", next)); err != nil {
				t.Errorf("the next znode: %v", err)
			}
		})
	}
}
