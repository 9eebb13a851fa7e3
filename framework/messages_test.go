package framework_test

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/zkserver"
)

// TestMessagesSayWhatToDo provokes errors. Each says the operation, the path in the ensemble, the cause, and
// what to do where there is one thing to do.
func TestMessagesSayWhatToDo(t *testing.T) {
	readOnly := acl.ReadOnly()
	unwritable := func(t *testing.T, c *framework.Client) string { // a znode that no client may write to
		must.Get(c.Create(t.Context(), "/read", nil, framework.WithACL(readOnly...)))(t)
		return "/read"
	}
	for name, tc := range map[string]struct {
		provoke func(t *testing.T, srv *zkserver.Server, c *framework.Client) error
		want    []string
	}{
		"a get below a wrong chroot": {func(t *testing.T, srv *zkserver.Server, _ *framework.Client) error {
			_, _, err := connect(t, srv.Addr()+"/wrong", framework.WithDialer(srv.Dial)).Get(t.Context(), "/x")
			return err
		}, []string{"get /wrong/x: znode does not exist"}},
		"a create below a wrong chroot": {func(t *testing.T, srv *zkserver.Server, _ *framework.Client) error {
			c := connect(t, srv.Addr()+"/wrong", framework.WithDialer(srv.Dial))
			return last(c.Create(t.Context(), "/x", nil))
		}, []string{"create /wrong/x: znode does not exist: the parent /wrong, of the chroot: check the connect string (WithParents creates it)"}},
		"a create below a wrong chroot of two names": {func(t *testing.T, srv *zkserver.Server, _ *framework.Client) error {
			c := connect(t, srv.Addr()+"/wrong/a", framework.WithDialer(srv.Dial))
			return last(c.Create(t.Context(), "/", nil))
		}, []string{"create /wrong/a: znode does not exist: the parent /wrong, of the chroot: check the connect string (WithParents creates it)"}},
		"a missing parent below a chroot": {func(t *testing.T, srv *zkserver.Server, _ *framework.Client) error {
			c := connect(t, srv.Addr()+"/right", framework.WithDialer(srv.Dial))
			must.Get(c.Create(t.Context(), "/", nil))(t)
			return last(c.Create(t.Context(), "/a/b", nil))
		}, []string{"create /right/a/b: znode does not exist: the parent /right/a (WithParents creates it)"}},
		"a missing parent": {func(t *testing.T, _ *zkserver.Server, c *framework.Client) error {
			return last(c.Create(t.Context(), "/a/b", nil))
		}, []string{"create /a/b: znode does not exist: the parent /a (WithParents creates it)"}},
		"a missing parent, in a transaction": {func(t *testing.T, _ *zkserver.Server, c *framework.Client) error {
			return last(c.Txn(t.Context(), framework.OpCreate("/a/b", nil)))
		}, []string{"operation 0 (create /a/b): znode does not exist: the parent /a"}},
		"a create that the parent's ACL refuses": {func(t *testing.T, _ *zkserver.Server, c *framework.Client) error {
			return last(c.Create(t.Context(), unwritable(t, c)+"/x", nil))
		}, []string{"create /read/x: not permitted by the znode's ACL: that of /read gives this client no CREATE"}},
		"a parent that its parent's ACL refuses": {func(t *testing.T, _ *zkserver.Server, c *framework.Client) error {
			return last(c.Create(t.Context(), unwritable(t, c)+"/x/y", nil, framework.WithParents()))
		}, []string{"create /read/x/y: not permitted by the znode's ACL: that of /read gives this client no CREATE"}},
		"parents that an ACL refuses": {func(t *testing.T, _ *zkserver.Server, c *framework.Client) error {
			return last(c.Create(t.Context(), unwritable(t, c)+"/x/y/z", nil, framework.WithParents()))
		}, []string{"create /read/x/y/z: not permitted by the znode's ACL: that of /read gives this client no CREATE"}},
		"a create that the parent's ACL refuses, in a transaction": {func(t *testing.T, _ *zkserver.Server, c *framework.Client) error {
			return last(c.Txn(t.Context(), framework.OpCreate(unwritable(t, c)+"/x", nil)))
		}, []string{"operation 0 (create /read/x): not permitted by the znode's ACL: that of /read gives this client no CREATE"}},
		"a delete that the parent's ACL refuses": {func(t *testing.T, _ *zkserver.Server, c *framework.Client) error {
			must.Get(c.Create(t.Context(), "/keep", nil))(t)
			must.Get(c.Create(t.Context(), "/keep/x", nil))(t)
			must.Get(c.SetACL(t.Context(), "/keep", readOnly, framework.AnyVersion))(t)
			return c.Delete(t.Context(), "/keep/x")
		}, []string{"delete /keep/x: not permitted by the znode's ACL: that of /keep gives this client no DELETE"}},
		"a delete of a znode with children": {func(t *testing.T, _ *zkserver.Server, c *framework.Client) error {
			must.Get(c.Create(t.Context(), "/a/b", nil, framework.WithParents()))(t)
			return c.Delete(t.Context(), "/a")
		}, []string{"delete /a: znode has children (DeleteTree deletes them)"}},
		"a creator's ACL without a credential": {func(t *testing.T, _ *zkserver.Server, c *framework.Client) error {
			return last(c.Create(t.Context(), "/own", nil, framework.WithACL(acl.Creator()...)))
		}, []string{"create /own: invalid ACL", "acl.Creator", "credential", "WithAuth"}},
		"a creator's ACL without a credential, for a parent": {func(t *testing.T, _ *zkserver.Server, c *framework.Client) error {
			return last(c.Create(t.Context(), "/own/x", nil, framework.WithACL(acl.Creator()...), framework.WithParents()))
		}, []string{"create /own/x: invalid ACL", "WithAuth"}},
		"a creator's ACL without a credential, in a transaction": {func(t *testing.T, _ *zkserver.Server, c *framework.Client) error {
			return last(c.Txn(t.Context(), framework.OpCreate("/own", nil, framework.WithACL(acl.Creator()...))))
		}, []string{"(create /own): invalid ACL", "WithAuth"}},
		"a creator's ACL without a credential, for many": {func(t *testing.T, _ *zkserver.Server, c *framework.Client) error {
			return last(c.CreateAll(t.Context(), framework.OpCreate("/own", nil, framework.Ephemeral(), framework.Protected(), framework.WithACL(acl.Creator()...))))
		}, []string{"(create /own): invalid ACL", "WithAuth"}},
		"a creator's ACL without a credential, set": {func(t *testing.T, _ *zkserver.Server, c *framework.Client) error {
			return last(c.SetACL(t.Context(), "/", acl.Creator(), framework.AnyVersion))
		}, []string{"set ACL of /: invalid ACL", "WithAuth"}},
		"semicolons between servers": {byString("h1:2181;h2:2181"), []string{`"h1:2181;h2:2181": must be one server: commas separate servers`}},
		"bars between servers":       {byString("h1:2181|h2:2181"), []string{`"h1:2181|h2:2181": must be one server: commas separate servers`}},
		"blanks between servers":     {byString("h1:2181 h2:2181"), []string{`"h1:2181 h2:2181": must be one server: commas separate servers`}},
		"blanks between names":       {byString("h1 h2"), []string{`"h1 h2": must be one server: commas separate servers`}},
		"several chroots":            {byString("h1/x,h2:2181/x"), []string{"chroot", "comma"}},
		"TLS to a plain port": {func(t *testing.T, srv *zkserver.Server, _ *framework.Client) error {
			c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithTLS(&tls.Config{MinVersion: tls.VersionTLS12}),
				framework.WithRetry(retry.Never()), framework.WithConnectTimeout(time.Second))
			_, _, err := c.Children(t.Context(), "/")
			return err
		}, []string{"children /: not connected", "TLS handshake: EOF: this port may speak no TLS"}},
		"plain to a TLS port": {func(t *testing.T, srv *zkserver.Server, _ *framework.Client) error {
			own := newAuthority(t).pair(t, "zk.test")
			proxy := tlsProxy(t, srv, func() *tls.Config {
				return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}}
			})
			c := newClient(t, "zk.test", framework.WithDialer(proxy.Dial), framework.WithRetry(retry.Never()), framework.WithConnectTimeout(time.Second))
			_, _, err := c.Children(t.Context(), "/")
			return err
		}, []string{"children /: not connected", "zk.test:2181: EOF", "this port speaks TLS"}},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			err := tc.provoke(t, srv, virtual(t, srv))
			if err == nil {
				t.Fatal("no error")
			}
			t.Log(err)
			wantText(t, err, append(tc.want, "framework: ")...)
		})
	}
}

// byString makes a client of the connect string.
func byString(s string) func(*testing.T, *zkserver.Server, *framework.Client) error {
	return func(t *testing.T, _ *zkserver.Server, _ *framework.Client) error {
		c, err := framework.NewClient(s)
		if err == nil {
			must.OK(t, c.Close())
		}
		return err
	}
}
