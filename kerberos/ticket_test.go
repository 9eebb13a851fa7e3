package kerberos_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/freeport"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/kerberos"
	"github.com/docent-go/docent/testing/zktest"
)

// refusedBy returns a KDC's reply with an error.
func refusedBy(t *testing.T, code int32) []byte {
	t.Helper()
	refused := messages.NewKRBError(types.NewPrincipalName(2, "krbtgt/"+realmName), realmName, code, "")
	reply := must.Get(refused.Marshal())(t)
	return framed(reply)
}

func TestTickets_are_renewed_before_they_expire(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	kdc := runFront(t, r)
	app := kerberos.Keytab("app", r.keytab("app"))
	m := mechanism(t, kdc.addr(), app, kerberos.WithConfigFile(config(t, kdc.addr(), "ticket_lifetime = 3s")))
	begun := time.Now()
	zktest.Eventually(t, patience, "it logs in again", func() bool {
		if err := start(t, m); err != nil {
			t.Error(err)
		}
		return kdc.logins.Load() >= 6 // two requests for each login
	})
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("three logins within %v, with tickets that last 3s", took)
	}
}

func TestTickets_of_a_cache_are_read_again(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	cache := kinit(t, r, "2s")
	m := mechanism(t, r.addr(), kerberos.CredentialCache(cache))
	must.OK(t, start(t, m))
	zktest.Eventually(t, patience, "the ticket expires", func() bool { return errors.Is(start(t, m), framework.ErrAuthFailed) })
	writeFile(t, cache, readFile(t, kinit(t, r, "1h")))
	if err := start(t, m); err != nil {
		t.Error("with a new cache:", err)
	}
}

func TestTickets_that_are_valid_serve_while_no_KDC_answers(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	kdc := runFront(t, r)
	m := mechanism(t, kdc.addr(), kerberos.Keytab("app", r.keytab("app")))
	must.OK(t, start(t, m))
	kdc.stop()
	c := connect(t, byName(t, zktest.Shared(t).Addr()), m)
	must.Get2(c.Get(t.Context(), "/zookeeper"))(t)
}

func TestTickets_that_have_expired_do_not_serve_while_no_KDC_answers(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	kdc := runFront(t, r)
	app := kerberos.Keytab("app", r.keytab("app"))
	m := mechanism(t, kdc.addr(), app, kerberos.WithConfigFile(config(t, kdc.addr(), "ticket_lifetime = 2s")))
	must.OK(t, start(t, m))
	kdc.stop()
	zktest.Eventually(t, patience, "the ticket expires", func() bool { return start(t, m) != nil })
	wantFailure(t, start(t, m), "no KDC answers")
}

func TestTickets_that_the_KDC_no_longer_takes_are_replaced(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	kdc := runFront(t, r)
	m := mechanism(t, kdc.addr(), kerberos.Keytab("app", r.keytab("app")))
	must.OK(t, start(t, m))
	before, refusals := kdc.logins.Load(), 1
	refusal := refusedBy(t, errorcode.KRB_AP_ERR_MODIFIED) // as after a change of the KDC's own key
	kdc.answerBy(func(request []byte) ([]byte, bool) {
		if request[0] != ticketRequest || refusals == 0 {
			return nil, false
		}
		refusals--
		return refusal, true
	})
	must.OK(t, start(t, m))
	if kdc.logins.Load() == before {
		t.Error("it did not log in again")
	}
	kdc.answerBy(func(request []byte) ([]byte, bool) { return refusal, request[0] == ticketRequest })
	before = kdc.tickets.Load()
	wantErr(t, "a KDC that always refuses", start(t, m), framework.ErrAuthFailed)
	if n := kdc.tickets.Load() - before; n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

func TestLogin_takes_the_latest_key_of_a_keytab(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	must.OK(t, r.admin(`ktadd -k "`+r.keytab("rekeyed")+`" rekeyed`)) // the older key stays in it
	path := t.TempDir() + "/copy.keytab"
	script := `rkt "` + r.keytab("rekeyed") + "\"\nwkt \"" + path + "\"\nq\n" // gives all of them one time
	must.OK(t, r.run(script, "ktutil"))
	must.OK(t, start(t, mechanism(t, r.addr(), kerberos.Keytab("rekeyed", path))))
}

func TestLogin_takes_an_encryption_type_of_the_keytab(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	path := t.TempDir() + "/one.keytab"
	script := `rkt "` + r.keytab("app") + "\"\ndelent 1\ndelent 2\ndelent 2\nwkt \"" + path + "\"\nq\n" // the KDC has four types
	must.OK(t, r.run(script, "ktutil"))
	if n := len(secrets(t, path)); n != 1 {
		t.Fatalf("the keytab has %d keys", n)
	}
	must.OK(t, start(t, mechanism(t, r.addr(), kerberos.Keytab("app", path))))
}

func TestLogin_reads_a_keytab_that_was_replaced(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	path := rekeyed(t, r, "app")
	m := mechanism(t, r.addr(), kerberos.Keytab("app", path))
	wantErr(t, "the wrong keytab", start(t, m), framework.ErrAuthFailed)
	writeFile(t, path, readFile(t, r.keytab("app")))
	if err := start(t, m); err != nil {
		t.Error("the right keytab:", err)
	}
}

func TestKDCs_are_asked_one_after_another(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	addrs := strings.Join([]string{freeport.Addr(t), runSilent(t), r.addr()}, " ")
	m := mechanism(t, addrs, kerberos.Password("alice", password))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // the silent one gets half of it
	defer cancel()
	must.Get(m.Start(ctx, "localhost"))(t)
}

func TestKDCs_that_answered_are_asked_first(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	broken := runFront(t, r)
	broken.answerBy(func([]byte) ([]byte, bool) { return nil, true })
	sound := runFront(t, r)
	m := mechanism(t, broken.addr()+" "+sound.addr(), kerberos.Keytab("app", r.keytab("app")))
	for range 3 {
		must.OK(t, start(t, m))
	}
	if n := broken.logins.Load() + broken.tickets.Load(); n != 1 {
		t.Errorf("%d requests to the KDC that does not answer, want 1", n)
	}
	sound.stop()
	broken.answerBy(nil)
	if err := start(t, m); err != nil || broken.tickets.Load() == 0 {
		t.Errorf("once the other has gone: %v", err)
	}
}

func TestKDCs_that_fail_are_no_refusal(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	for name, tc := range map[string]struct {
		answer []byte
		want   string
	}{
		"generic error":       {refusedBy(t, errorcode.KRB_ERR_GENERIC), "KRB_ERR_GENERIC"},
		"service unavailable": {refusedBy(t, errorcode.KDC_ERR_SVC_UNAVAILABLE), "SVC_UNAVAILABLE"},
		"closed connection":   {nil, "EOF"},
		"cut off":             {[]byte{0, 0, 0, 9, 'x'}, "EOF"},
		"too long":            {[]byte{255, 255, 255, 255}, "must be at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kdc := runFront(t, r)
			kdc.answerBy(func([]byte) ([]byte, bool) { return tc.answer, true })
			err := start(t, mechanism(t, kdc.addr(), kerberos.Password("alice", password)))
			wantFailure(t, err, "no KDC answers")
			wantFailure(t, err, tc.want)
		})
	}
	wantFailure(t, start(t, mechanism(t, freeport.Addr(t), kerberos.Password("alice", password))), "no KDC answers")
}

func TestStart_obeys_its_context(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	m := mechanism(t, runSilent(t), kerberos.Keytab("app", r.keytab("app")))
	gone := errors.New("caller is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(gone) })
	begun := time.Now()
	_, err := m.Start(ctx, "localhost")
	wantErr(t, "cancelled", err, context.Canceled)
	wantErr(t, "cancelled", err, gone)
	if took := time.Since(begun); took > patience/2 {
		t.Errorf("it returned after %v", took)
	}
	short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	<-short.Done()
	_, err = m.Start(short, "localhost")
	wantErr(t, "too late", err, context.DeadlineExceeded)
}

func TestNames_of_servers(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	app := kerberos.Keytab("app", r.keytab("app"))
	names, err := net.LookupAddr("127.0.0.1")
	if err != nil || len(names) == 0 {
		t.Fatalf("127.0.0.1 has no name: %v", err)
	}
	canonical := "zookeeper/" + strings.ToLower(strings.TrimSuffix(names[0], "."))
	for name, tc := range map[string]struct {
		opts []kerberos.Option
		host string
		want string
	}{
		"as in the connect string": {nil, "127.0.0.1", "zookeeper/127.0.0.1"},
		"small letters":            {nil, "ZK1.Docent.Test.", "zookeeper/zk1.docent.test"},
		"another service":          {[]kerberos.Option{kerberos.WithServiceName("zk")}, "zk1", "zk/zk1"},
		"one for all":              {[]kerberos.Option{kerberos.WithServicePrincipal("zk/all")}, "zk1", "zk/all"},
		"by the address":           {[]kerberos.Option{kerberos.WithCanonicalHost(), kerberos.WithServiceName("zk")}, "127.0.0.1", strings.Replace(canonical, "zookeeper", "zk", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := mechanism(t, r.addr(), app, tc.opts...).Start(within(t, patience), tc.host)
			wantErr(t, "a service that is unknown", err, framework.ErrAuthFailed)
			if err == nil || !strings.Contains(err.Error(), "ticket for "+tc.want+":") {
				t.Errorf("%v, want it to be about %s", err, tc.want)
			}
		})
	}
}
