package worlds_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/docent-go/docent/testing/worlds"
)

// misuseVariable has TestMisuse do its work.
const misuseVariable = "WORLDS_MISUSE"

// TestMisuse fails, in a process of its own: see TestMisuseIsRefused.
func TestMisuse(t *testing.T) {
	nothing := func(*testing.T, *worlds.World) {}
	switch os.Getenv(misuseVariable) {
	case "options":
		worlds.Each(t, nothing, nil, worlds.Only("", worlds.Embedded), worlds.Only("unknown", 7))
	case "freeze":
		worlds.Each(t, func(t *testing.T, w *worlds.World) { w.Members()[0].Freeze(t) }, worlds.Only("quick", worlds.Embedded))
	case "isolate":
		worlds.Each(t, func(t *testing.T, w *worlds.World) { w.Members()[0].Isolate(t) },
			worlds.Breakable(), worlds.Only("quick", worlds.Embedded))
	case "expire":
		worlds.Each(t, func(t *testing.T, w *worlds.World) { w.Way(t).Expire(t) }, worlds.Only("quick", worlds.Embedded))
	case "goroutine":
		worlds.Each(t, func(t *testing.T, _ *worlds.World) { go func() { select {} }() }, worlds.Only("quick", worlds.Embedded))
	}
}

func TestMisuseIsRefused(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for misuse, want := range map[string][]string{
		"options": {
			"option 0: must not be nil", "the reason must not be empty",
			"Kind(7): must be one of the package's constants", "must leave at least one world",
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
