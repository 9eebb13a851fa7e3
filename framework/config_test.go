package framework_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

func TestAllFaultsOfOneCallAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	c, err := framework.NewClient("host:99999,[::1,a:b:c/bad//chroot/",
		framework.WithSessionTimeout(-time.Second),
		framework.WithConnectTimeout(0),
		framework.WithLeaseMargin(-1),
		framework.WithRetry(retry.Times(-1, 0)),
		framework.WithNamespace("/absolute"),
		framework.WithAuth("", nil),
		framework.WithACL(),
		framework.WithACLProvider(nil),
		framework.WithTLS(nil),
		framework.WithDialer(nil),
		framework.WithLogger(nil),
		framework.WithServers(nil),
		framework.WithResolver(nil),
		framework.WithSASL(nil),
		framework.WithSASL(framework.DigestMD5("", secret)),
		framework.WithStateListener(nil),
		framework.WithMaxPacket(1, 1<<30+1),
		nil)
	if c != nil || err == nil {
		t.Fatalf("client %v, error %v", c, err)
	}
	wantText(t, err,
		`server "host:99999": port "99999": must be a number from 1 to 65535`,
		`server "[::1": must be host, host:port or [IPv6]:port`,
		`server "a:b:c": an IPv6 address must stand in brackets`,
		`chroot: invalid path "/bad//chroot/"`,
		"session timeout -1s: must be between 100ms and",
		"connect timeout 0s: must be positive",
		"lease margin -1ns: must be at least 0",
		"retry policy: ",
		`namespace "/absolute": must be a path without its leading slash`,
		"credential 0: scheme must not be empty",
		"ACL: must have at least one entry",
		"ACL provider: must not be nil",
		"TLS configuration: must not be nil",
		"dialer: must not be nil",
		"logger: must not be nil",
		"source of servers: must not be nil",
		"resolver: must not be nil",
		"SASL mechanism",
		"SASL user",
		"state listener: must not be nil",
		"largest request 1: must be between 4096 and 1073741824",
		"largest reply 1073741825: must be between",
		"option 17: must not be nil")
	if strings.Contains(err.Error(), secret) || t.Failed() {
		t.Errorf("error:\n%v", err)
	}
	for line := range strings.Lines(err.Error()) {
		if !strings.HasPrefix(line, "framework: ") {
			t.Errorf("line without the package: %q", line)
		}
	}
	_, err = framework.NewClient("localhost", framework.WithSlog(nil)) // the last logger counts
	wantText(t, err, "logger: must not be nil")
}

func TestConnectStringsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", " ", "/chroot", ",", "a,,b", "host:", ":2181", "host:0", "host:x", "ho st:1", "[::1]x", "a\x00:1", "h:1/rel/", "h:1/../x", "h:1/a//b", "[not-ip]:1"} {
		if c, err := framework.NewClient(s); err == nil {
			c.Close()
			t.Errorf("%q was accepted", s)
		}
	}
	for _, s := range []string{"h", "h:1", " a:1 , b:2 ", "[::1]:2181", "[fe80::1%eth0]", "10.0.0.1/", "h/a/b"} {
		c, err := framework.NewClient(s)
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		c.Close()
	}
}

func TestNamespacesAreViewsOfOneSession(t *testing.T) {
	t.Parallel()
	root := connect(t, zktest.Shared(t).Addr())
	chroot := fresh(t)
	c := connect(t, zktest.Shared(t).Addr()+chroot, framework.WithNamespace("ns"))
	inner := must.Get(c.Namespace("inner/most"))(t)
	path := mustCreate(t, inner, "/a/node-", "x", framework.Sequential())
	if path != "/a/node-0000000000" || inner.AbsolutePath(path) != chroot+"/ns/inner/most"+path {
		t.Errorf("created %s, absolute %s", path, inner.AbsolutePath(path))
	}
	wantData(t, root, chroot+"/ns/inner/most"+path, "x")
	if got := children(t, inner, "/"); !slices.Equal(got, []string{"a"}) || inner.Session() != c.Session() {
		t.Errorf("children %v of session %v, the client's is %v", got, inner.Session(), c.Session())
	}
	results, err := inner.Txn(t.Context(), framework.OpCreate("/b", nil))
	if err != nil || results[0].Path != "/b" {
		t.Errorf("%v, %v", results, err)
	}
	for _, ns := range []string{"", "/a", "a/", "a//b", ".."} {
		if _, err := c.Namespace(ns); err == nil {
			t.Errorf("namespace %q was accepted", ns)
		}
	}
	wantExists(t, c.Root(), inner.AbsolutePath("/b"), true)
	must.OK(t, inner.Close())
	wantEqual(t, "state after a view of it was closed", c.State(), closed)
}

func TestACLProvider_for_znodes_and_parents(t *testing.T) {
	t.Parallel()
	readOnly := []acl.Entry{{Perms: acl.Read | acl.Delete, Scheme: "world", ID: "anyone"}}
	c := connect(t, zktest.Shared(t).Addr()+fresh(t), framework.WithACLProvider(func(path string) []acl.Entry {
		if strings.HasSuffix(path, "/fixed") {
			return readOnly
		}
		return nil
	}))
	for _, tc := range []struct {
		path string
		opts []framework.CreateOption
		want []acl.Entry
	}{
		{"/open", nil, acl.Open()},
		{"/fixed", nil, readOnly},
		{"/deep/fixed", nil, readOnly},
		{"/deep/open", []framework.CreateOption{framework.WithACL(acl.ReadOnly()...)}, acl.ReadOnly()},
	} {
		mustCreate(t, c, tc.path, "", tc.opts...)
		if got, _, err := c.ACL(t.Context(), tc.path); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s has %#v (%v), want %#v", tc.path, got, err, tc.want)
		}
	}
	wantErr(t, "set against the ACL", last(c.Set(t.Context(), "/fixed", nil, -1)), framework.ErrNoAuth)
	if st, err := c.SetACL(t.Context(), "/open", readOnly, 0); err != nil || st.Aversion != 1 {
		t.Errorf("SetACL: %+v, %v", st, err)
	}
	bad := connect(t, zktest.Shared(t).Addr(), framework.WithACLProvider(func(string) []acl.Entry { return []acl.Entry{{}} }))
	wantText(t, last(bad.Create(t.Context(), "/x", nil)), "permissions 0: must be between 1 and 31")
}

func TestRetriesAreClassified(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	c := connect(t, proxy.Addr()+"/ns", framework.WithRetry(retry.Times(2, time.Millisecond)))
	proxy.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore, Times: fault.Forever})
	_, _, err := c.Get(t.Context(), "/a")
	var exhausted *retry.ExhaustedError
	if !errors.As(err, &exhausted) || exhausted.Attempts != 3 || !framework.Retryable(err) {
		t.Errorf("%v (%+v), want three attempts and a retryable error", err, exhausted)
	}
	wantErr(t, "get", err, framework.ErrUnknownOutcome)
	for _, err := range []error{
		nil, context.Canceled, framework.ErrClosed, framework.ErrSessionExpired, framework.ErrNoNode, framework.ErrAuthFailed,
		errors.Join(framework.ErrNotConnected, context.DeadlineExceeded),
	} {
		wantEqual(t, "retryable", framework.Retryable(err), false)
	}
	if !framework.Retryable(framework.ErrNotConnected) {
		t.Error("not to be connected is not retryable")
	}
}

func TestOperation_ends_with_its_session_by_policy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		view func(*framework.Client) *framework.Client
		want error
	}{
		"by default it is tried in the next session": {func(c *framework.Client) *framework.Client { return c }, nil},
		"within one session it fails":                {func(c *framework.Client) *framework.Client { return c.InSession(c.Session().ID) }, framework.ErrSessionEnded},
	} {
		runVirtually(t, name, func(t *testing.T, srv *zkserver.Server) {
			c := tc.view(virtual(t, srv))
			cut := srv.Rules().Add(fault.Rule{Op: fault.GetChildren, Action: fault.CutBefore})
			srv.Refuse()
			done := background(func() error { return last(c.Children(t.Context(), "/")) })
			await(t, cut.Hit(), "the cut")
			must.OK(t, srv.Expire(c.Session().ID))
			srv.Accept()
			wantErr(t, "the error", <-done, tc.want)
		})
	}
}
