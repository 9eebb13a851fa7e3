package query_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
)

// waiting runs "docent wait" in the background.
func (env *environment) waiting(t *testing.T, args ...string) <-chan result {
	t.Helper()
	ended := make(chan result, 1)
	go func() { ended <- env.docent(t, append([]string{"wait"}, args...)...) }() // ends with the wait
	synctest.Wait()
	return ended
}

// hasEnded reports whether the command has ended, when nothing more happens by itself at this time.
func hasEnded(ended <-chan result) bool {
	synctest.Wait()
	return len(ended) > 0
}

// TestWait returns when each kind of lock is free, and not before.
func TestWait(t *testing.T) {
	t.Parallel()
	data := metadata("batch-3", 811, "nightly", "6f1c")
	for name, holders := range map[string][]string{
		"a mutex":           {"/locks/a" + guid + "lock-"},
		"two readers":       {"/locks/a" + guid + "__READ__", "/locks/a" + guid + "__READ__"},
		"a semaphore":       {"/locks/a/leases" + guid + "lease-", "/locks/a/leases" + guid + "lease-"},
		"kazoo's lock":      {"/locks/a/" + strings.Repeat("0a", 16) + "__lock__"},
		"a leader":          {"/locks/a" + guid + "latch-"},
		"a mutex's waiters": {"/locks/a" + guid + "lock-", "/locks/a" + guid + "lock-", "/locks/a" + guid + "lock-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(t *testing.T, env *environment) {
				var znodes []string
				for _, path := range holders {
					znodes = append(znodes, contender(t, env.client, path, data))
				}
				ended := env.waiting(t, "/locks/a")
				<-time.After(time.Hour) // virtual
				for _, znode := range znodes {
					if hasEnded(ended) {
						t.Fatalf("it returned while %s was there: %+v", znode, <-ended)
					}
					must.OK(t, env.client.Delete(t.Context(), znode))
				}
				began := time.Now() // virtual
				r := <-ended
				if r.code != 0 || r.out != "" || !strings.Contains(r.err, "docent: /locks/a is held by batch-3:811 nightly\n") || strings.Count(r.err, "\n") > len(holders) {
					t.Errorf("exit code %d: %q, %s", r.code, r.out, r.err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("it returned %v after the last release", took)
				}
			})
		})
	}
}

// TestWait_for_several locks: all must be free together.
func TestWait_for_several(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		a := contender(t, env.client, "/locks/a"+guid+"lock-", "")
		ended := env.waiting(t, "/locks/free", "/locks/a", "/missing")
		free := contender(t, env.client, "/locks/free"+guid+"lock-", "") // after wait has seen it free
		must.OK(t, env.client.Delete(t.Context(), a))
		<-time.After(time.Minute) // virtual
		if hasEnded(ended) {
			t.Fatalf("it returned while /locks/free was held: %+v", <-ended)
		}
		must.OK(t, env.client.Delete(t.Context(), free))
		if r := <-ended; r.code != 0 {
			t.Errorf("exit code %d: %s", r.code, r.err)
		}
	})
}

// TestWait_ends otherwise: by --timeout of the command line alone, by a signal, and not by an outage.
func TestWait_ends(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		znode := contender(t, env.client, "/locks/a"+guid+"lock-", metadata("batch-3", 811, "", "6f1c"))
		began := time.Now() // virtual
		r := env.docent(t, "wait", "--timeout", "5s", "/locks/a")
		if took := time.Since(began); r.code != 124 || !strings.Contains(r.err, "--timeout 5s is over: /locks/a is held by batch-3:811") || took < 5*time.Second || took > 7*time.Second {
			t.Errorf("after %v: exit code %d: %s", took, r.code, r.err)
		}
		if r := env.docent(t, "wait", "--timeout", "5s", "/locks/a", "-o", "json"); r.code != 124 || !strings.Contains(r.err, `"type":"deadline_exceeded"`) {
			t.Errorf("exit code %d: %s", r.code, r.err)
		}
		for _, args := range [][]string{{}, {"locks"}, {"/a", "//"}} {
			if r := env.docent(t, append([]string{"wait"}, args...)...); r.code != 2 {
				t.Errorf("%q: exit code %d: %s", args, r.code, r.err)
			}
		}
		env.env = append(env.env, "DOCENT_TIMEOUT=5s")
		ended := env.waiting(t, "/locks/a")
		<-time.After(time.Minute) // virtual
		if hasEnded(ended) {
			t.Fatalf("the environment's time of queries ended it: %+v", <-ended)
		}
		env.server.Refuse()
		env.server.Cut()
		<-time.After(time.Minute) // virtual
		env.server.Accept()
		if hasEnded(ended) {
			t.Fatalf("an outage ended it: %+v", <-ended)
		}
		_ = env.client.Delete(t.Context(), znode) // or it has ended with its session
		if r := <-ended; r.code != 0 {
			t.Errorf("after an outage: exit code %d: %s", r.code, r.err)
		}
	})
}

// TestWait_for_a_hidden_holder: the znode may not be read, so servers may keep its end to themselves, and
// those from 3.8.4 and 3.9.2 on refuse to watch it.
func TestWait_for_a_hidden_holder(t *testing.T) {
	t.Parallel()
	for _, version := range []string{zkserver.DefaultVersion, "3.9.6"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			virtual(t, waitForAHiddenHolder, zkserver.WithVersion(version))
		})
	}
}

func waitForAHiddenHolder(t *testing.T, env *environment) {
	t.Helper()
	owner := env.connect(t)
	must.OK(t, owner.AddAuth(t.Context(), "digest", []byte("u:p")))
	must.Get(env.client.Create(t.Context(), "/locks/a", nil, framework.WithParents()))(t)
	znode := must.Get(owner.Create(t.Context(), "/locks/a"+guid+"lock-", nil, framework.Ephemeral(), framework.Sequential(),
		framework.WithACL(acl.Creator()...)))(t)
	ended := env.waiting(t, "/locks/a")
	<-time.After(time.Minute) // virtual
	if hasEnded(ended) {
		t.Fatalf("it returned: %+v", <-ended)
	}
	must.OK(t, owner.Delete(t.Context(), znode))
	if r := <-ended; r.code != 0 || !strings.Contains(r.err, "/locks/a is held by ?") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}
