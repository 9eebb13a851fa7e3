package query_test

import (
	"os"
	"strings"
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// Paths and limits that can't be are usage errors, which need no ensemble.
func TestArguments_are_checked_first(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"ls", "tree", "doctor", "who", "queue", "revoke"} {
		for _, path := range []string{"", "locks", "/locks/", "//", "/a//b", "/a/../b", "/a\x00b"} {
			if r := plain(t, "--connect", "127.0.0.1:1", command, path); r.code != 2 || !strings.Contains(r.err, "path") {
				t.Errorf("%s %q: exit code %d: %s", command, path, r.code, r.err)
			}
		}
	}
	for _, command := range []string{"ls", "tree", "doctor"} {
		for _, limit := range []string{"--depth=0", "--depth=-1", "--max=0", "--max=-1", "--rate=-1"} {
			if r := plain(t, "--connect", "127.0.0.1:1", command, limit); r.code != 2 || !strings.Contains(r.err, limit[:strings.Index(limit, "=")]) {
				t.Errorf("%s %s: exit code %d: %s", command, limit, r.code, r.err)
			}
		}
	}
	r := plain(t, "--connect", "127.0.0.1:1", "ls", "--kind=lock", "--depth=0", "locks")
	for _, fault := range []string{"--kind", "--depth", "path"} {
		if r.code != 2 || !strings.Contains(r.err, fault) {
			t.Errorf("ls with three faults: exit code %d, not %s: %s", r.code, fault, r.err)
		}
	}
}

// Roots at the edge of what there is.
func TestRoots(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		env.fill(t)
		for root, want := range map[string]string{
			"/": "3 locks", "/locks": "3 locks", "/locks/report": "1 lock", "/zookeeper": "0 locks",
			"/locks/import/leases": "0 locks", "/locks/report" + guid + "lock-0000000000": "0 locks",
		} {
			if r := env.docent(t, "ls", root); r.code != 0 || !strings.Contains(r.out, want) {
				t.Errorf("%s: exit code %d: %s%s", root, r.code, r.out, r.err)
			}
			env.docent(t, "ls", root, "-o", "json") // compares the form
			env.docent(t, "ls", root, "-o", "jsonl")
			env.docent(t, "doctor", root, "-o", "json", "--servers=false")
		}
	})
}

// break takes contenders alone, and of those one that nothing is below.
func TestBreak_takes_contenders_alone(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		env.fill(t)
		before := len(env.server.Paths())
		for _, path := range []string{"/", "/zookeeper", "/zookeeper/config", "/missing", "/missing/lock-0000000000", "/lock-0000000000", "/locks/import/leases", "/locks/import"} {
			if r := env.docent(t, "break", path, "--session", "0x1", "--yes", "--czxid", "1"); r.code != 1 {
				t.Errorf("%s: exit code %d: %s", path, r.code, r.err)
			}
		}
		if after := len(env.server.Paths()); after != before {
			t.Errorf("%d paths, before %d", after, before)
		}
		// A directory with the name of a contender.
		path := "/odd/lock-0000000007"
		must.Get(env.client.Create(t.Context(), path+"/below", nil, framework.WithParents()))(t)
		of := env.target(t, path)
		if r := env.docent(t, "break", path, "--persistent", "--yes", "--czxid", of.czxid); r.code != 1 || !env.exists(t, path) {
			t.Errorf("a directory: exit code %d: %s", r.code, r.err)
		}
	})
}

// break and who agree on paths with a chroot and a namespace.
func TestBreak_below_a_chroot_and_a_namespace(t *testing.T) {
	t.Parallel()
	_, addr := processes(t)
	c := apptest.Client(t, addr)
	full := contender(t, c, "/app/ns/locks/a"+guid+"lock-", metadata("h", 1, "", "p"))
	w := &environment{client: c}
	of := w.target(t, full)
	inside := strings.TrimPrefix(full, "/app/ns")
	args := func(rest ...string) []string {
		return append([]string{"--connect", addr + "/app", "--namespace", "ns"}, rest...)
	}
	if r := plain(t, args("who", "/locks/a", "-o", "name")...); r.code != 0 || r.out != inside+"\n" {
		t.Errorf("who: exit code %d: %s%s, want %s", r.code, r.out, r.err, inside)
	}
	if r := plain(t, args("break", full, "--session", of.session, "--yes", "--czxid", of.czxid)...); r.code != 1 || !w.exists(t, full) {
		t.Errorf("the ensemble's path: exit code %d: %s", r.code, r.err)
	}
	if r := plain(t, args("break", inside, "--session", of.session, "--yes", "--czxid", of.czxid)...); r.code != 0 || w.exists(t, full) {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

// Errors name the path in the ensemble, with chroot and namespace.
func TestErrors_name_the_path_in_the_ensemble(t *testing.T) {
	t.Parallel()
	env, addr := processes(t)
	contender(t, env.client, "/app/ns/locks/a"+guid+"lock-", metadata("h", 1, "", "p"))
	for want, args := range map[string][]string{
		"/app/ns/locks/a is no contender's znode": {"break", "/locks/a", "--session", "0x1", "--yes", "--czxid", "1"},
		"/app/ns/locks/a is held by":              {"wait", "/locks/a", "--timeout", "2s"},
	} {
		if r := plain(t, append([]string{"--connect", addr + "/app", "--namespace", "ns"}, args...)...); r.code == 0 || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit code %d: %s, want %q", args[0], r.code, r.err, want)
		}
	}
}

// A full disk is an error, and no document is lost without a word.
func TestOutput_on_a_full_disk(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		apptest.Missing(t, "no /dev/full")
	}
	t.Cleanup(func() { _ = full.Close() })
	srv := zkserver.Run(t, zkenv.DrawVersion(t)...)
	addr := must.Get(srv.Listen("127.0.0.1:0"))(t)
	for _, args := range [][]string{
		{"ls"}, {"ls", "-o", "json"}, {"tree"}, {"doctor"}, {"doctor", "-o", "json"}, {"doctor", "-o", "svg"}, {"who", "/a"}, {"queue", "/a"}, {"who", "/a", "-o", "json"},
	} {
		if r := plainTo(t, full, append([]string{"--connect", addr}, args...)...); r.code != 1 || !strings.Contains(r.err, "no space left") {
			t.Errorf("%q: exit code %d: %s", args, r.code, r.err)
		}
	}
}
