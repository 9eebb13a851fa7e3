package kerberos_test

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/kerberos"
	"github.com/docent-go/docent/retry"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// The tests of this file run against a real KDC and a real ZooKeeper. TestMain gives both a JAAS
// file with the keytab of zookeeper/localhost.

func TestMechanism_proves_who_the_client_is_on_every_connection(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	kdc := runFront(t, r)
	proxy := zkproxy.Run(t, zktest.Shared(t).Addr())
	var rec record
	m := mechanism(t, kdc.addr(), kerberos.Keytab("app", r.keytab("app")))
	c := connect(t, byName(t, proxy.Addr()), m, framework.WithLogger(rec.logger()))
	path := "/" + t.Name() + rand.Text() // a server serves several runs
	_, err := c.Create(t.Context(), path, []byte("of app"), framework.WithACL(
		acl.Entry{Perms: acl.All, Scheme: "sasl", ID: "app@" + realmName}))
	if err != nil {
		t.Fatal(err)
	}
	alice := connect(t, byName(t, zktest.Shared(t).Addr()), mechanism(t, r.addr(), kerberos.Password("alice", password)))
	_, _, err = alice.Get(t.Context(), path)
	wantErr(t, "another principal's get", err, framework.ErrNoAuth)

	id := c.Session().ID
	for range 3 {
		before := kdc.tickets.Load()
		proxy.Rules().Add(fault.Rule{Op: fault.GetData, Path: path, Action: fault.CutBefore})
		data, _, err := c.Get(within(t, patience), path)
		if err != nil || string(data) != "of app" {
			t.Errorf("get across a reconnection: %q, %v", data, err)
		}
		if kdc.tickets.Load() == before {
			t.Error("it reconnected without a new service ticket")
		}
	}
	if c.Session().ID != id {
		t.Error("it has another session after a reconnection")
	}
	if n := kdc.logins.Load(); n != 2 { // the KDC wants a proof of the first
		t.Errorf("%d login requests, want those of one login", n)
	}
	rec.add(m, *m, err, kerberos.Keytab("app", r.keytab("app")))
	rec.check(t, secrets(t, r.keytab("app"))...)
}

func TestMechanism_knows_keytabs_passwords_caches_and_encryption_types(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	server := byName(t, zktest.Shared(t).Addr())
	app := kerberos.Keytab("app", r.keytab("app"))
	aes := func(kind string) string {
		return "default_tkt_enctypes = " + kind + "\n\tdefault_tgs_enctypes = " + kind
	}
	for name, tc := range map[string]struct {
		credential kerberos.Credential
		libdefault string
		want       string
	}{
		"keytab":                       {app, "", "app"},
		"keytab of a name of two":      {kerberos.Keytab("app/host@"+realmName, r.keytab("app/host")), "", "app/host"},
		"password":                     {kerberos.Password("alice@"+realmName, password), "", "alice"},
		"password without a challenge": {kerberos.Password("carol", "of-carol"), "", "carol"},
		"cache":                        {kerberos.CredentialCache(kinit(t, r, "1h")), "", "app"},
		"aes128-sha1":                  {app, aes("aes128-cts-hmac-sha1-96"), "app"},
		"aes256-sha1":                  {app, aes("aes256-cts-hmac-sha1-96"), "app"},
		"aes128-sha2":                  {app, aes("aes128-cts-hmac-sha256-128"), "app"},
		"aes256-sha2":                  {app, aes("aes256-cts-hmac-sha384-192"), "app"},
		"password with aes256-sha2":    {kerberos.Password("alice", password), aes("aes256-cts-hmac-sha384-192"), "alice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mechanism(t, r.addr(), tc.credential, kerberos.WithConfigFile(config(t, r.addr(), tc.libdefault)))
			ids, err := connect(t, server, m).WhoAmI(t.Context())
			if want := (framework.Identity{Scheme: "sasl", ID: tc.want + "@" + realmName}); err != nil || !slices.Contains(ids, want) {
				t.Errorf("the server takes it for %v, %v; want %v", ids, err, want)
			}
		})
	}
}

func TestMechanism_refusals_are_a_state_and_no_loop(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	app := kerberos.Keytab("app", r.keytab("app"))
	for name, tc := range map[string]struct {
		credential kerberos.Credential
		opts       []kerberos.Option
		want       string
	}{
		"wrong keytab":                     {kerberos.Keytab("app", rekeyed(t, r, "app")), nil, "PREAUTH_FAILED"},
		"wrong password":                   {kerberos.Password("alice", "wr0ng"), nil, "PREAUTH_FAILED"},
		"wrong password, no challenge":     {kerberos.Password("carol", "wr0ng"), nil, "integrity"},
		"unknown principal":                {kerberos.Password("mallory", password), nil, "C_PRINCIPAL_UNKNOWN"},
		"unknown service":                  {app, []kerberos.Option{kerberos.WithServiceName("queue")}, "S_PRINCIPAL_UNKNOWN"},
		"service whose key a server lacks": {app, []kerberos.Option{kerberos.WithServicePrincipal("app/host")}, "refused by the server"},
		"expired cache":                    {expiredCache(t, r), nil, "expired at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var rec record
			var seen trail
			m := &counted{Mechanism: mechanism(t, r.addr(), tc.credential, tc.opts...)}
			c := newClient(t, byName(t, zktest.Shared(t).Addr()), framework.WithSASL(m), framework.WithLogger(rec.logger()),
				framework.WithRetry(retry.Forever(time.Millisecond)), framework.WithStateListener(seen.add))
			wantErr(t, "AwaitConnected", c.AwaitConnected(within(t, patience)), framework.ErrAuthFailed)
			_, _, err := c.Get(within(t, patience), "/")
			wantErr(t, "get", err, framework.ErrAuthFailed)
			zktest.Eventually(t, patience, "the listener is notified", func() bool { return seen.cause(framework.AuthFailed) != "" })
			if cause := seen.cause(framework.AuthFailed); !strings.Contains(cause, tc.want) {
				t.Errorf("the cause is %s, want %q in it", cause, tc.want)
			}
			start, before := time.Now(), m.starts.Load()
			zktest.Eventually(t, patience, "it tries again", func() bool { return m.starts.Load() >= before+3 })
			if took := time.Since(start); took < 40*time.Millisecond {
				t.Errorf("three attempts within %v", took)
			}
			if got := seen.states(); len(got) != 2 {
				t.Errorf("states %v, want it to stay AuthFailed", got)
			}
			rec.add(err, m.Mechanism, *m.Mechanism)
			rec.check(t, append(secrets(t, r.keytab("app")), password, "wr0ng")...)
		})
	}
}

// A counted mechanism counts the exchanges.
type counted struct {
	*kerberos.Mechanism
	starts atomic.Int32
}

// Start is part of [framework.Mechanism].
func (c *counted) Start(ctx context.Context, host string) (framework.Exchange, error) {
	c.starts.Add(1)
	return c.Mechanism.Start(ctx, host)
}

// rekeyed returns a keytab for a principal with keys that the KDC does not have.
func rekeyed(t *testing.T, r *realm, principal string) string {
	t.Helper()
	path := t.TempDir() + "/wrong.keytab"
	script := "addent -password -p " + principal + "@" + realmName + " -k 1 -e aes256-cts-hmac-sha1-96\nwrong\nwkt \"" + path + "\"\nq\n"
	must.OK(t, r.run(script, "ktutil"))
	return path
}

// expiredCache returns a cache whose ticket has expired.
func expiredCache(t *testing.T, r *realm) kerberos.Credential {
	t.Helper()
	path := kinit(t, r, "1s")
	<-time.After(2 * time.Second) // tickets count whole seconds
	return kerberos.CredentialCache(path)
}

func TestMechanism_goes_on_trying_while_no_KDC_answers(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	kdc := runFront(t, r)
	kdc.answerBy(func([]byte) ([]byte, bool) { return nil, true }) // closes the connection
	var seen trail
	m := mechanism(t, kdc.addr(), kerberos.Keytab("app", r.keytab("app")))
	c := newClient(t, byName(t, zktest.Shared(t).Addr()), framework.WithSASL(m), framework.WithStateListener(seen.add))
	zktest.Eventually(t, patience, "it asks again", func() bool { return kdc.logins.Load() >= 3 })
	if got := seen.states(); len(got) != 1 || got[0] != framework.Connecting {
		t.Errorf("states %v, want it to be Connecting", got)
	}
	kdc.answerBy(nil)
	must.OK(t, c.AwaitConnected(within(t, patience)))
}

// A trail is the states that a client went through.
type trail struct {
	mu      sync.Mutex
	changes []framework.StateChange
}

func (r *trail) add(change framework.StateChange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, change)
}

func (r *trail) states() []framework.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	var states []framework.State
	for _, change := range r.changes {
		states = append(states, change.To)
	}
	return states
}

// cause returns why the client came to a state, "" if it did not.
func (r *trail) cause(state framework.State) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, change := range r.changes {
		if change.To == state && change.Cause != nil {
			return change.Cause.Error()
		}
	}
	return ""
}
