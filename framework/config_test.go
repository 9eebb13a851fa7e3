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
	"github.com/docent-go/docent/internal/check"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

func TestAllFaultsOfOneCallAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	c, err := framework.NewClient("host:99999,[::1,a:b:c,sec:pa55@h/bad//chroot/",
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
		framework.WithStateListener(nil),
		framework.WithRetryObserver(nil),
		framework.WithMaxPacket(1, 1<<40),
		nil)
	must.That(t, c == nil && err != nil, "client %v, error %v", c, err)
	for _, part := range []string{
		`server "host:99999": port "99999": must be a number from 1 to 65535`,
		`server "[::1": must be host, host:port or [IPv6]:port`,
		`server "a:b:c": an IPv6 address must stand in brackets`,
		`server "***@h": must not contain a credential, see WithAuth`,
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
		"state listener: must not be nil",
		"retry observer: must not be nil",
		"largest request 1: must be between 4096 and 1073741824",
		"largest reply 1099511627776: must be between",
		"option 14: must not be nil",
	} {
		check.That(t, strings.Contains(err.Error(), part), "the error lacks %q", part)
	}
	check.That(t, !strings.Contains(err.Error(), "pa55") && !t.Failed(), "error:\n%v", err)
	for line := range strings.Lines(err.Error()) {
		check.That(t, strings.HasPrefix(line, "framework: "), "line without the package: %q", line)
	}
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
	inner, err := c.Namespace("inner/most")
	must.OK(t, err)
	path := mustCreate(t, inner, "/a/node-", "x", framework.Sequential())
	if path != "/a/node-0000000000" || inner.AbsolutePath(path) != chroot+"/ns/inner/most"+path {
		t.Errorf("created %s, absolute %s", path, inner.AbsolutePath(path))
	}
	check.Equal(t, string(must.First(root.Get(t.Context(), chroot+"/ns/inner/most"+path))(t)), "x", "Get")
	if got := children(t, inner, "/"); !slices.Equal(got, []string{"a"}) || inner.Session() != c.Session() {
		t.Errorf("children %v of session %v, the client's is %v", got, inner.Session(), c.Session())
	}
	results, err := inner.Txn(t.Context(), framework.OpCreate("/b", nil))
	check.That(t, err == nil && results[0].Path == "/b", "%v, %v", results, err)
	for _, ns := range []string{"", "/a", "a/", "a//b", ".."} {
		if _, err := c.Namespace(ns); err == nil {
			t.Errorf("namespace %q was accepted", ns)
		}
	}
	must.OK(t, inner.Close())
	check.That(t, c.State() == closed, "the client is %v after a view of it was closed", c.State())
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
		check.Slices(t, must.First(c.ACL(t.Context(), tc.path))(t), tc.want, "%s has", tc.path)
	}
	_, err := c.Set(t.Context(), "/fixed", nil, -1)
	wantErr(t, "set against the ACL", err, framework.ErrNoAuth)
	check.Equal(t, must.Get(c.SetACL(t.Context(), "/open", readOnly, 0))(t).Aversion, 1, "SetACL")
	_, err = c.SetACL(t.Context(), "/open", nil, 0)
	check.Says(t, err, "must have at least one entry", "an empty ACL")
	bad := connect(t, zktest.Shared(t).Addr(), framework.WithACLProvider(func(string) []acl.Entry { return []acl.Entry{{}} }))
	check.Says(t, must.Err(bad.Create(t.Context(), "/x", nil)), "permissions 0: must be between 1 and 31",
		"an ACL without permissions")
}

func TestRetriesAreObservedAndClassified(t *testing.T) {
	t.Parallel()
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	var retries []framework.Retry // the operation's goroutine is the test's
	c := connect(t, proxy.Addr()+"/ns", framework.WithRetry(retry.Times(2, time.Millisecond)),
		framework.WithRetryObserver(func(r framework.Retry) { retries = append(retries, r) }))
	proxy.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore, Times: fault.Forever})
	_, _, err := c.Get(t.Context(), "/a")
	var exhausted *retry.ExhaustedError
	check.That(t, errors.As(err, &exhausted) && exhausted.Attempts == 3 && framework.Retryable(err),
		"%v (%+v), want three attempts and a retryable error", err, exhausted)
	wantErr(t, "get", err, framework.ErrUnknownOutcome)
	check.That(t, len(retries) == 2 && retries[1].Op == "get" && retries[1].Path == "/ns/a" && retries[1].Attempt == 2 && retries[1].Err != nil && retries[1].Wait == time.Millisecond,
		"observed %+v", retries)
	for _, err := range []error{
		nil, context.Canceled, framework.ErrClosed, framework.ErrSessionExpired, framework.ErrNoNode, framework.ErrAuthFailed,
		errors.Join(framework.ErrNotConnected, context.DeadlineExceeded),
	} {
		check.That(t, !framework.Retryable(err), "%v is retryable", err)
	}
	check.That(t, framework.Retryable(framework.ErrNotConnected), "not to be connected is not retryable")
}

func TestOperation_ends_with_its_session_by_policy(t *testing.T) {
	t.Parallel()
	server := zktest.Shared(t)
	proxy := zkproxy.Run(t, server.Addr())
	for _, tc := range []struct {
		name string
		opts []framework.Option
		want error
	}{
		{"by default it is tried in the next session", nil, nil},
		{"within one session it fails", []framework.Option{framework.WithinSession()}, framework.ErrSessionEnded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var g gate
			c := connect(t, proxy.Addr(), append(tc.opts, framework.WithDialer(g.dial), framework.WithSessionTimeout(20*time.Second))...)
			id, password := framework.SessionSecret(c)
			g.shut()
			cut := proxy.Rules().Add(fault.Rule{Session: id, Op: fault.GetChildren, Action: fault.CutBefore})
			done := make(chan error)
			go func() {
				_, _, err := c.Children(t.Context(), "/")
				done <- err
			}()
			await(t, cut.Hit(), "the cut")
			must.OK(t, zktest.KillSession(t.Context(), server.Addr(), id, password))
			g.open()
			check.Is(t, <-done, tc.want, "done")
		})
	}
}
