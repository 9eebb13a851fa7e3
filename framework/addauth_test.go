package framework_test

import (
	"context"
	"crypto/sha1" //nolint:gosec // ZooKeeper's digest
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

const renewed = "n3w-Pa55"

// onlyFor is the ACL of a user of the scheme digest with one password.
func onlyFor(user, password string) framework.ACLOption {
	sum := sha1.Sum([]byte(user + ":" + password)) //nolint:gosec // as above
	id := user + ":" + base64.StdEncoding.EncodeToString(sum[:])
	return framework.WithACL(acl.Entry{Perms: acl.All, Scheme: "digest", ID: id})
}

// digest returns a credential of the user alice.
func digest(password string) []byte { return []byte(user + ":" + password) }

// reads returns which of a client's znodes it can read.
func reads(t *testing.T, c *framework.Client, paths ...string) (readable []string) {
	t.Helper()
	for _, path := range paths {
		_, _, err := c.Get(t.Context(), path)
		if err == nil {
			readable = append(readable, path)
		} else {
			wantErr(t, "get "+path, err, framework.ErrNoAuth)
		}
	}
	return readable
}

// wantReads fails the test unless c can read exactly the paths wanted of /old, /new and /bob.
func wantReads(t *testing.T, when string, c *framework.Client, want ...string) {
	t.Helper()
	if got := reads(t, c, "/old", "/new", "/bob"); !slices.Equal(got, want) {
		t.Errorf("%s: it can read %q, want %q", when, got, want)
	}
}

// protect creates the znodes of [wantReads] by c.
func protect(t *testing.T, c *framework.Client) {
	t.Helper()
	mustCreate(t, c, "/old", secretData, onlyFor(user, secret))
	mustCreate(t, c, "/new", secretData, onlyFor(user, renewed))
	mustCreate(t, c, "/bob", secretData, onlyFor("bob", secret))
}

func testRotation(t *testing.T, c *framework.Client, proxy *zkproxy.Proxy) {
	t.Helper()
	protect(t, c)
	id := c.Session().ID
	wantReads(t, "before", c, "/old", "/bob")
	view := must.Get(c.Namespace("some"))(t)
	must.OK(t, view.AddAuth(t.Context(), "digest", digest(renewed)))
	wantReads(t, "on the connection of AddAuth", c, "/old", "/new", "/bob")
	for range 2 {
		proxy.ResetRequests()
		cut := proxy.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore})
		wantReads(t, "on the next connection", c, "/new", "/bob")
		await(t, cut.Hit(), "the cut")
		if n := proxy.Count(fault.SetAuth); n != 2 {
			t.Errorf("%d credentials presented, want 2", n)
		}
	}
	if c.Session().ID != id {
		t.Error("it has another session")
	}
}

func TestAddAuth_replaces_the_credential_of_the_same_user(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			opts := []framework.Option{framework.WithAuth("digest", []byte("bob:"+secret)), framework.WithAuth("digest", digest(secret))}
			c, proxy := proxied(t, srv, opts...)
			testRotation(t, c, proxy)
		})
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
		c := connect(t, proxy.Addr()+fresh(t), framework.WithAuth("digest", []byte("bob:"+secret)),
			framework.WithAuth("digest", digest(secret)))
		testRotation(t, c, proxy)
	})
}

func testRefusal(t *testing.T, c *framework.Client, proxy *zkproxy.Proxy, seen *trail) {
	t.Helper()
	protect(t, c)
	id := c.Session().ID
	h := mustHold(t, c)
	for range 2 {
		err := c.AddAuth(within(t, patience), "nosuchscheme", []byte(renewed))
		wantErr(t, "AddAuth", err, framework.ErrAuthFailed)
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), renewed) {
			t.Errorf("the error shows the credential: %v", err)
		}
		zktest.Eventually(t, patience, "the connection ends", func() bool { return c.State() != connected || len(seen.states()) > 3 })
		must.OK(t, c.AwaitConnected(within(t, patience)))
		wantReads(t, "after a refusal", c, "/old")
	}
	proxy.ResetRequests()
	proxy.Cut()
	wantReads(t, "on the next connection", c, "/old")
	if n := proxy.Count(fault.SetAuth); n != 1 {
		t.Errorf("%d credentials presented, want 1", n)
	}
	if err := h.Err(); err != nil || c.Session().ID != id {
		t.Errorf("session %#x, want %#x: %v", c.Session().ID, id, err)
	}
	if slices.Contains(seen.states(), framework.AuthFailed) {
		t.Errorf("states %v, want no AuthFailed", seen.states())
	}
}

func TestAddAuth_of_a_refused_credential_has_no_effect(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		virtually(t, func(t *testing.T, srv *zkserver.Server) {
			var seen trail
			c, proxy := proxied(t, srv, framework.WithAuth("digest", digest(secret)), framework.WithStateListener(seen.add))
			testRefusal(t, c, proxy, &seen)
		})
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		var seen trail
		proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
		c := connect(t, proxy.Addr()+fresh(t), framework.WithAuth("digest", digest(secret)), framework.WithStateListener(seen.add),
			framework.WithSessionTimeout(span))
		testRefusal(t, c, proxy, &seen)
	})
}

func TestAddAuth_without_a_connection_waits_for_one(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, proxy := proxied(t, srv, framework.WithAuth("digest", digest(secret)))
		protect(t, c)
		srv.Refuse()
		srv.Cut()
		sleep(time.Second)
		err := c.AddAuth(within(t, 2*time.Second), "digest", []byte("bob:"+secret))
		wantErr(t, "AddAuth", err, context.DeadlineExceeded, framework.ErrNotConnected)
		added := make(chan error, 1)
		go func() { added <- c.AddAuth(t.Context(), "digest", digest(renewed)) }()
		sleep(time.Second)
		proxy.ResetRequests()
		srv.Accept()
		if err := <-added; err != nil {
			t.Fatal(err)
		}
		wantReads(t, "once it is connected", c, "/new")
		if n := proxy.Count(fault.SetAuth); n != 1 {
			t.Errorf("%d credentials presented, want 1", n)
		}
	})
}

func TestAddAuth_brings_a_refused_client_back(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		refusing := srv.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.Refuse, Code: fault.AuthFailed, Times: fault.Forever})
		c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithAuth("digest", digest(secret)))
		wantErr(t, "AwaitConnected", c.AwaitConnected(t.Context()), framework.ErrAuthFailed)
		sleep(time.Minute) // pauses take seconds by now
		start := time.Now()
		wantErr(t, "AddAuth", c.AddAuth(t.Context(), "digest", digest(renewed)), framework.ErrAuthFailed)
		if took := time.Since(start); took > 0 {
			t.Errorf("it was tried after %v", took)
		}
		refusing.Remove()
		must.OK(t, c.AddAuth(t.Context(), "digest", digest("4nother")))
		if took := time.Since(start); took > 0 || c.State() != connected {
			t.Errorf("%v after %v", c.State(), took)
		}
		protect(t, c)
		mustCreate(t, c, "/another", "", onlyFor(user, "4nother"))
		wantReads(t, "with the last", c)
		if _, _, err := c.Get(t.Context(), "/another"); err != nil {
			t.Error(err)
		}
	})
}

// The credential is good, and another one is not.
func TestAddAuth_reports_a_refused_client(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c := newClient(t, srv.Addr(), framework.WithDialer(srv.Dial), framework.WithAuth("nosuchscheme", digest(secret)))
		wantErr(t, "AwaitConnected", c.AwaitConnected(t.Context()), framework.ErrAuthFailed)
		wantErr(t, "AddAuth", c.AddAuth(t.Context(), "digest", digest(renewed)), framework.ErrAuthFailed)
		if c.State() != framework.AuthFailed {
			t.Errorf("state %v", c.State())
		}
	})
}

func TestAddAuth_at_servers_that_require_a_credential(t *testing.T) {
	t.Parallel()
	server := zktest.Run(t, zktest.WithSetting("enforce.auth.enabled", "true"), zktest.WithSetting("enforce.auth.schemes", "digest"))
	c := newClient(t, server.Addr())
	zktest.Eventually(t, patience, "the first request is refused", func() bool {
		_, _, _ = c.Get(within(t, patience), "/")
		return c.State() == framework.AuthFailed
	})
	must.OK(t, c.AddAuth(within(t, patience), "digest", digest(secret)))
	mustCreate(t, c, "/mine", "", framework.WithACL(acl.Creator()...))
}

func TestAddAuth_goes_on_where_the_answer_was_lost(t *testing.T) {
	t.Parallel()
	for _, action := range []fault.Action{fault.CutBefore, fault.DropReply} {
		t.Run(action.String(), func(t *testing.T) {
			virtually(t, func(t *testing.T, srv *zkserver.Server) {
				c, _ := proxied(t, srv, framework.WithAuth("digest", digest(secret)))
				protect(t, c)
				srv.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: action})
				must.OK(t, c.AddAuth(t.Context(), "digest", digest(renewed)))
				wantReads(t, "after the cut", c, "/new")
				srv.Cut()
				wantReads(t, "on the next connection", c, "/new")
			})
		})
	}
}

func TestAddAuth_refuses_bad_arguments_at_once(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, proxy := proxied(t, srv)
		wantErr(t, "a credential that is too long", c.AddAuth(t.Context(), "digest", make([]byte, framework.DefaultMaxRequest)), framework.ErrTooLarge)
		if err := c.AddAuth(t.Context(), "", digest(secret)); err == nil || !strings.Contains(err.Error(), "scheme must not be empty") {
			t.Errorf("no scheme: %v", err)
		}
		if n := proxy.Count(fault.SetAuth); n != 0 {
			t.Errorf("%d credentials presented", n)
		}
		must.OK(t, c.Close())
		wantErr(t, "a closed client", c.AddAuth(t.Context(), "digest", digest(secret)), framework.ErrClosed)
	})
}

// In other schemes than digest the user cannot be told: one token replaces another.
func TestAddAuth_of_a_token_replaces_the_earlier_one(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		c, proxy := proxied(t, srv, framework.WithAuth("ip", []byte("first")), framework.WithAuth("digest", digest(secret)))
		for _, token := range []string{"second", "third"} {
			must.OK(t, c.AddAuth(t.Context(), "ip", []byte(token)))
		}
		proxy.ResetRequests()
		srv.Cut()
		sleep(time.Second)
		if n := proxy.Count(fault.SetAuth); n != 2 {
			t.Errorf("%d credentials presented, want 2", n)
		}
	})
}
