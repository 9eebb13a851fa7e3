package zkenv_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkenv"
)

// misuseVariable has TestMisuse do its work.
const misuseVariable = "WORLDS_MISUSE"

// TestMisuse fails, in a process of its own: see TestMisuseIsRefused.
func TestMisuse(t *testing.T) {
	nothing := func(*testing.T, *zkenv.Env) {}
	switch os.Getenv(misuseVariable) {
	case "options":
		zkenv.ForEach(t, nothing, nil, zkenv.Only("", zkenv.Embedded), zkenv.Only("unknown", 7))
	case "real":
		zkenv.ForEach(t, nothing)
	case "limits":
		zkenv.ForEach(t, nothing, zkenv.Only("the first reason", zkenv.Embedded, zkenv.EmbeddedEnsemble, zkenv.Ensemble),
			zkenv.Only("the second", zkenv.EmbeddedEnsemble, zkenv.Embedded))
	case "ensemble":
		zkenv.ForEach(t, nothing, zkenv.Only("it takes a quorum", zkenv.EmbeddedEnsemble, zkenv.Ensemble))
	case "freeze":
		zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) { env.Members()[0].Freeze(t) }, zkenv.Only("quick", zkenv.Embedded))
	case "isolate":
		zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) { env.Members()[0].Isolate(t) },
			zkenv.Breakable(), zkenv.Only("quick", zkenv.Embedded))
	case "expire":
		zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) { env.Route(t).Expire(t) }, zkenv.Only("quick", zkenv.Embedded))
	case "goroutine":
		zkenv.ForEach(t, func(t *testing.T, _ *zkenv.Env) { go func() { select {} }() }, zkenv.Only("quick", zkenv.Embedded))
	}
}

// misuse runs TestMisuse in a process with the environment variables, and returns its output.
func misuse(t *testing.T, test string, variables ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), must.Get(os.Executable())(t), "-test.run", "^TestMisuse$", "-test.v")
	cmd.Env = append(append(os.Environ(), misuseVariable+"="+test, "ZK_REAL="), variables...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A test runs in the environments that all its limits allow. With ZK_REAL=one it has one real environment:
// the ensemble only if it can't have the server.
func TestEnvironmentsOfATest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		variable, test string
		want           []string
	}{
		{"all", "real", []string{"embedded", "embedded-ensemble", "standalone", "ensemble"}},
		{"all", "limits", []string{"embedded", "embedded-ensemble"}},
		{"one", "real", []string{"standalone"}},
		{"one", "ensemble", []string{"ensemble"}},
		{"one", "limits", nil},
	} {
		out := must.Get(misuse(t, tc.test, "ZK_TEST=none", "ZK_REAL="+tc.variable))(t)
		for _, kind := range []string{"embedded", "embedded-ensemble", "standalone", "ensemble"} {
			ran := strings.Contains(out, ": TestMisuse/"+kind+" (")
			if ran != slices.Contains(tc.want, kind) {
				t.Errorf("ZK_REAL=%s: %s of %q is a subtest: %v, want %v\n%s", tc.variable, kind, tc.test, ran, !ran, out)
			}
		}
	}
}

func TestMisuseIsRefused(t *testing.T) {
	t.Parallel()
	for test, want := range map[string][]string{
		"options": {
			"option 0: must not be nil", "the reason must not be empty",
			"Kind(7): must be one of the package's constants", "must leave at least one environment",
		},
		"freeze":    {"only in a test that is Breakable"},
		"isolate":   {"must be an ensemble, and is embedded"},
		"expire":    {"nobody is connected"},
		"goroutine": {"blocked goroutines remain"},
	} {
		t.Run(test, func(t *testing.T) {
			t.Parallel()
			out, err := misuse(t, test, "ZK_TEST=none")
			if err == nil {
				t.Error("nothing is refused")
			}
			for _, text := range want {
				if !strings.Contains(out, text) {
					t.Errorf("output lacks %q:\n%s", text, out)
				}
			}
		})
	}
}
