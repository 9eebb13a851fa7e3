package query_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/form"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
)

// TestCost counts the requests of each query, which docs/command.md promises, and finds no write.
func TestCost(t *testing.T) {
	t.Parallel()
	w, addr := processes(t)
	for i, name := range []string{"a", "a", "a", "b"} {
		contender(t, w.client, "/jobs/deep/"+name+guid+"lock-", metadata("h", 1, "", fmt.Sprint(i)))
	}
	for _, step := range []string{"x one", "y two", "y one", "x two"} { // a deadlock
		name, party, _ := strings.Cut(step, " ")
		contender(t, w.client, "/dead/"+name+guid+"lock-", metadata("h", 1, "", party))
	}
	contender(t, w.client, "/sem/s/leases"+guid+"lease-", "")
	contender(t, w.client, "/sem/s/locks"+guid+"lock-", "")
	proxy := zkproxy.Run(t, addr)
	const list, read = fault.GetChildren, fault.GetData
	for _, test := range []struct {
		args       string
		list, read int
		syncs      int
	}{
		{"who /jobs/deep/a", 1, 3, 1},
		{"queue /jobs/deep/a", 1, 3, 1},
		{"queue /sem/s", 3, 2, 1},
		{"ls /jobs", 4, 2, 1},
		{"ls /jobs --waiting", 4, 2, 1},
		{"ls /jobs -o json", 4, 4, 1},
		{"tree /jobs", 4, 4, 1},
		{"doctor /sem --servers=false", 4, 2, 2},
		{"doctor /jobs --servers=false --confirm 1ms", 4 + 1, 4 + 3, 3}, // the process that waits for itself once more
		{"doctor /dead --servers=false --confirm 1ms", 3 + 2, 4 + 4, 3}, // both locks once more
	} {
		proxy.ResetRequests()
		plain(t, append(strings.Fields(test.args), "--connect", proxy.Addr())...)
		got := map[fault.Op]int{}
		for _, rq := range proxy.Requests() {
			for _, part := range rq.Parts { // several reads are one request
				got[part.Op]++
			}
			if rq.Op != fault.MultiRead && rq.Op != fault.Connect && rq.Op != fault.CloseSession && rq.Op != fault.Ping {
				got[rq.Op]++
			}
		}
		if want := (map[fault.Op]int{fault.Sync: test.syncs, list: test.list, read: test.read}); !maps.Equal(got, want) {
			t.Errorf("%s: requests %v, want %v", test.args, got, want)
		}
	}
}

// TestCost_of_many_locks: the contenders of several locks are read by one request, also those of unfair mutexes.
func TestCost_of_many_locks(t *testing.T) {
	t.Parallel()
	w, addr := processes(t)
	const locks = 200
	for i := range locks {
		contender(t, w.client, fmt.Sprintf("/jobs/%03d%slock-", i, guid), metadata("h", i, "", fmt.Sprint(i)))
		m := must.Get(lock.NewUnfairMutex(w.client, fmt.Sprintf("/unfair/%03d", i)))(t)
		must.Get(m.Lock(t.Context()))(t)
	}
	proxy := zkproxy.Run(t, addr)
	for _, args := range []string{"ls /jobs", "tree /jobs", "ls /unfair"} {
		proxy.ResetRequests()
		r := plain(t, append(strings.Fields(args), "--connect", proxy.Addr())...)
		if r.code != 0 || !strings.Contains(r.out, "199") {
			t.Errorf("%s: not all locks:\n%s%s", args, r.out, r.err)
		}
		requests, parts := 0, 0
		for _, rq := range proxy.Requests() {
			if rq.Op == fault.GetData || rq.Op == fault.MultiRead {
				requests++
				parts += max(1, len(rq.Parts))
			}
		}
		if parts < locks || requests > 10 {
			t.Errorf("%s: %d reads in %d requests, want at most 10", args, parts, requests)
		}
	}
}

// TestRate: a search keeps --rate. --timeout ends it, and the command shows the locks found by then.
func TestRate(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		for i := range 60 {
			contender(t, env.client, fmt.Sprintf("/locks/%02d%slock-", i, guid), "")
		}
		began := time.Now() // virtual
		if r := env.docent(t, "ls", "--rate", "10", "--timeout", "1m"); r.code != 0 || !strings.Contains(r.out, "60 locks") {
			t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
		}
		if took := time.Since(began); took < 11*time.Second || took > 13*time.Second {
			t.Errorf("some 122 requests at 10 a second took %v", took)
		}
		began = time.Now()
		r := env.docent(t, "ls", "--rate", "10", "--timeout", "8s", "-o", "json")
		if took := time.Since(began); took < 7*time.Second || took > 9*time.Second {
			t.Errorf("with --timeout 8s it took %v", took)
		}
		var document form.Snapshot
		must.OK(t, json.Unmarshal([]byte(r.out), &document))
		if n := len(document.Locks); r.code != 0 || document.Complete || n < 5 || n > 30 || !strings.Contains(r.err, "--timeout 8s ended the search") {
			t.Errorf("exit code %d, %d locks, complete %v: %s", r.code, n, document.Complete, r.err)
		}
		for _, command := range []string{"ls", "tree", "doctor"} { // the default is a bound, too
			began = time.Now()
			args := []string{command, "--rate", "2"}
			if command == "doctor" {
				args = append(args, "--servers=false")
			}
			r := env.docent(t, args...)
			if took := time.Since(began); took > 11*time.Second || !strings.Contains(r.err, "--timeout 10s ended the search") {
				t.Errorf("%s took %v: %s", command, took, r.err)
			}
		}
		env.env = append(env.env, "DOCENT_TIMEOUT=8s")
		if r := env.docent(t, "doctor", "--rate", "10", "--servers=false"); r.code != 0 || !strings.Contains(r.err, "deadlocks may be missed") {
			t.Errorf("exit code %d: %s", r.code, r.err)
		}
	})
}
