package query_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
)

// A target is a contender's znode, as break has to name it.
type target struct{ path, session, czxid string }

func (env *environment) target(t *testing.T, path string) target {
	t.Helper()
	st, ok, err := env.client.Exists(t.Context(), path)
	if err != nil || !ok {
		t.Fatalf("%s: %v, %v", path, ok, err)
	}
	return target{path, "0x" + strconv.FormatInt(st.EphemeralOwner, 16), strconv.FormatInt(st.Czxid, 10)}
}

func (env *environment) exists(t *testing.T, path string) bool {
	t.Helper()
	_, ok := must.Get2(env.client.Exists(t.Context(), path))(t)
	return ok
}

func (env *environment) data(t *testing.T, path string) string {
	t.Helper()
	data, _ := must.Get2(env.client.Get(t.Context(), path))(t)
	return string(data)
}

func TestBreak(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		env.fill(t)
		first := env.target(t, "/locks/report"+guid+"lock-0000000000")
		second := env.target(t, "/locks/report"+guid+"lock-0000000001")
		for name, test := range map[string]struct {
			args []string
			code int
		}{
			"the lock's path":          {[]string{"break", "/locks/report", "--session", first.session, "--yes", "--czxid", first.czxid}, 1},
			"a directory":              {[]string{"break", "/locks", "--session", first.session, "--yes", "--czxid", first.czxid}, 1},
			"another session":          {[]string{"break", first.path, "--session", "0x1", "--yes", "--czxid", first.czxid}, 1},
			"another transaction":      {[]string{"break", first.path, "--session", first.session, "--yes", "--czxid", second.czxid}, 1},
			"no session":               {[]string{"break", first.path, "--yes", "--czxid", first.czxid}, 2},
			"persistent, but it isn't": {[]string{"break", first.path, "--persistent", "--yes", "--czxid", first.czxid}, 1},
			"no transaction":           {[]string{"break", first.path, "--session", first.session, "--yes"}, 2},
			"no terminal, no --yes":    {[]string{"break", first.path, "--session", first.session, "--czxid", first.czxid}, 2},
			"not a number":             {[]string{"break", first.path, "--session", "zero", "--yes", "--czxid", first.czxid}, 2},
		} {
			if r := env.docent(t, test.args...); r.code != test.code || !env.exists(t, first.path) {
				t.Errorf("%s: exit code %d, want %d; %s", name, r.code, test.code, r.err)
			}
		}
		r := env.docent(t, "break", first.path, "--session", first.session, "--yes", "--czxid", first.czxid)
		if r.code != 0 || env.exists(t, first.path) || !env.exists(t, second.path) {
			t.Errorf("exit code %d: %s", r.code, r.err)
		}
		golden(t, "break", r.out+r.err)
	})
}

func TestBreak_of_a_znode_without_a_session(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		path := "/stays" + guid + "lock-0000000001"
		must.Get(env.client.Create(t.Context(), path, nil, framework.WithParents()))(t)
		of := env.target(t, path)
		if r := env.docent(t, "break", path, "--session", "0x0", "--yes", "--czxid", of.czxid); r.code != 1 || !env.exists(t, path) {
			t.Errorf("with a session: exit code %d, %s", r.code, r.err)
		}
		if r := env.docent(t, "break", path, "--persistent", "--yes", "--czxid", of.czxid); r.code != 0 || env.exists(t, path) {
			t.Errorf("exit code %d: %s", r.code, r.err)
		}
	})
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		env.fill(t)
		first, second := "/locks/report"+guid+"lock-0000000000", "/locks/report"+guid+"lock-0000000001"
		if r := env.docent(t, "revoke", "/locks/report"); r.code != 2 || env.data(t, first) == "__REVOKE__" {
			t.Errorf("no terminal, no --yes: exit code %d: %s", r.code, r.err)
		}
		r := env.docent(t, "revoke", "/locks/report", "--yes")
		golden(t, "revoke", r.out+r.err)
		if r.code != 0 || env.data(t, first) != "__REVOKE__" || env.data(t, second) == "__REVOKE__" {
			t.Errorf("exit code %d: %s", r.code, r.err)
		}
		if r := env.docent(t, "revoke", second, "--yes"); r.code != 0 || env.data(t, second) != "__REVOKE__" {
			t.Errorf("of a waiter: exit code %d: %s", r.code, r.err)
		}
		if r := env.docent(t, "revoke", "/locks/import", "--yes"); r.code != 2 {
			t.Errorf("of two holders: exit code %d: %s", r.code, r.err)
		}
		if r := env.docent(t, "revoke", "/locks/import", "--all-holders", "--yes"); r.code != 0 || strings.Count(r.out, "asking") != 2 {
			t.Errorf("of all holders: exit code %d: %s", r.code, r.out+r.err)
		}
		if r := env.docent(t, "revoke", "/locks", "--yes"); r.code != 1 {
			t.Errorf("of a directory: exit code %d: %s", r.code, r.err)
		}
	})
}

// TestASessionIsNamedOnce: that of a contender without metadata is its name.
func TestASessionIsNamedOnce(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		of := env.target(t, contender(t, env.client, "/bare"+guid+"lock-", ""))
		for _, args := range [][]string{
			{"revoke", "/bare", "--yes"},
			{"break", of.path, "--session", of.session, "--yes", "--czxid", of.czxid},
		} {
			r := env.docent(t, args...)
			if said := r.out + r.err; r.code != 0 || strings.Count(said, of.session) != 1 {
				t.Errorf("%v: exit code %d: %s", args, r.code, said)
			}
		}
	})
}

// TestAProtectedContext has to be named before a command ends a hold.
func TestAProtectedContext(t *testing.T) {
	t.Parallel()
	virtual(t, func(t *testing.T, env *environment) {
		env.fill(t)
		file := filepath.Join(t.TempDir(), "config.json")
		text := `{"current":"prod","contexts":{"prod":{"connect":"ignored:1","protected":true}}}`
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		of := env.target(t, "/locks/report"+guid+"lock-0000000000")
		args := []string{"--config", file, "break", of.path, "--session", of.session, "--yes", "--czxid", of.czxid}
		if r := env.docent(t, args...); r.code != 2 || !env.exists(t, of.path) {
			t.Errorf("unnamed: exit code %d: %s", r.code, r.err)
		}
		if r := env.docent(t, append(args, "--confirm-context", "test")...); r.code != 2 || !env.exists(t, of.path) {
			t.Errorf("misnamed: exit code %d: %s", r.code, r.err)
		}
		if r := env.docent(t, append(args, "--confirm-context", "prod")...); r.code != 0 || env.exists(t, of.path) {
			t.Errorf("named: exit code %d: %s", r.code, r.err)
		}
	})
}
