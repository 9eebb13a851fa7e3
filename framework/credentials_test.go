package framework_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkserver"
)

// twoCredentials are accepted.
func twoCredentials() []framework.Option {
	return []framework.Option{
		framework.WithAuth("digest", []byte(user+":"+secret)),
		framework.WithAuth("digest", []byte("bob:"+secret)),
	}
}

func TestCredentials_are_accepted_before_requests(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		c, proxy := proxied(t, srv, append(twoCredentials(), framework.WithStateListener(seen.add))...)
		if n := proxy.Count(fault.SetAuth); n != 2 {
			t.Errorf("%d credentials sent, want 2", n)
		}
		mustCreate(t, c, "/mine", "", framework.WithACL(acl.Creator()...))
		if acl, _, err := c.ACL(t.Context(), "/mine"); err != nil || len(acl) != 2 {
			t.Errorf("created under %v, %v, want both credentials", acl, err)
		}
		sleep(time.Second) // a connection that lasted, after which none is made to wait
		proxy.ResetRequests()
		late := proxy.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.DelayReply, Delay: time.Second, Skip: 1})
		proxy.Cut()
		start := time.Now()
		await(t, late.Hit(), "the second credential")
		synctest.Wait()
		if c.State() == connected {
			t.Error("connected while a credential is not answered")
		}
		must.Get2(c.Get(t.Context(), "/mine"))(t)
		if took := time.Since(start); took != time.Second {
			t.Errorf("served after %v, want the second that the credential takes", took)
		}
		if n := proxy.Count(fault.SetAuth); n != 2 {
			t.Errorf("%d credentials sent at the reconnection, want 2", n)
		}
		seen.await(t, connecting, connected, suspended, connected)
	})
}

func TestCredential_without_an_answer(t *testing.T) {
	t.Parallel()
	const limit = 500 * time.Millisecond
	const longest = 200 * time.Millisecond // the pause before a second attempt
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		held := srv.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.HoldReply})
		start := time.Now()
		c, proxy := proxied(t, srv, append(twoCredentials(), framework.WithConnectTimeout(limit))...)
		if took := time.Since(start); held.Hits() != 1 || took < limit || took > limit+longest {
			t.Errorf("connected after %v, want one more attempt after %v", took, limit)
		}
		sleep(time.Second)
		id := c.Session().ID
		srv.Rules().Add(fault.Rule{Op: fault.SetAuth, Action: fault.HoldReply})
		proxy.Cut()
		start = time.Now()
		if _, _, err := c.Children(t.Context(), "/"); err != nil || c.Session().ID != id {
			t.Errorf("session %#x, want %#x: %v", c.Session().ID, id, err)
		}
		if took := time.Since(start); took < limit || took > limit+longest {
			t.Errorf("served after %v, want one more attempt after %v", took, limit)
		}
	})
}

func TestRefusedCredential_is_retried_ever_slower(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, srv *zkserver.Server) {
		var seen trail
		proxy := newProxy(t, srv)
		opts := append(twoCredentials(), framework.WithAuth("nosuchscheme", []byte(secret)),
			framework.WithDialer(proxy.Dial), framework.WithSessionTimeout(span), framework.WithStateListener(seen.add))
		c := newClient(t, srv.Addr(), opts...)
		wantErr(t, "AwaitConnected", c.AwaitConnected(t.Context()), framework.ErrAuthFailed)
		sleep(time.Minute)
		dials := sentAt(proxy, fault.Connect)
		// The pause doubles up to two seconds, of which a part is drawn.
		if n := len(dials); n < 30 || n > 300 {
			t.Errorf("%d attempts in a minute", n)
		}
		longest := time.Duration(0)
		for i := range dials[1:] {
			longest = max(longest, dials[i+1].Sub(dials[i]))
		}
		if longest <= span/16 || longest > 2*time.Second {
			t.Errorf("the longest pause is %v", longest)
		}
		if !slices.Equal(seen.states(), []framework.State{connecting, framework.AuthFailed}) {
			t.Errorf("states %v, want it to stay AuthFailed", seen.states())
		}
		wantErr(t, "the cause", seen.last(framework.AuthFailed).Cause, framework.ErrAuthFailed)
	})
}
