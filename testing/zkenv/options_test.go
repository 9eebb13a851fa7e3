package zkenv_test

import (
	"os"
	"os/exec"
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
	case "freeze":
		zkenv.ForEach(t, func(t *testing.T, w *zkenv.Env) { w.Members()[0].Freeze(t) }, zkenv.Only("quick", zkenv.Embedded))
	case "isolate":
		zkenv.ForEach(t, func(t *testing.T, w *zkenv.Env) { w.Members()[0].Isolate(t) },
			zkenv.Breakable(), zkenv.Only("quick", zkenv.Embedded))
	case "expire":
		zkenv.ForEach(t, func(t *testing.T, w *zkenv.Env) { w.Route(t).Expire(t) }, zkenv.Only("quick", zkenv.Embedded))
	case "goroutine":
		zkenv.ForEach(t, func(t *testing.T, _ *zkenv.Env) { go func() { select {} }() }, zkenv.Only("quick", zkenv.Embedded))
	}
}

func TestMisuseIsRefused(t *testing.T) {
	t.Parallel()
	program := must.Get(os.Executable())(t)
	for misuse, want := range map[string][]string{
		"options": {
			"option 0: must not be nil", "the reason must not be empty",
			"Kind(7): must be one of the package's constants", "must leave at least one environment",
		},
		"freeze":    {"only in a test that is Breakable"},
		"isolate":   {"must be an ensemble, and is embedded"},
		"expire":    {"nobody is connected"},
		"goroutine": {"blocked goroutines remain"},
	} {
		t.Run(misuse, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program, "-test.run", "^TestMisuse$")
			cmd.Env = append(os.Environ(), misuseVariable+"="+misuse, "ZK_TEST=none")
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Error("nothing is refused")
			}
			for _, text := range want {
				if !strings.Contains(string(out), text) {
					t.Errorf("output lacks %q:\n%s", text, out)
				}
			}
		})
	}
}
