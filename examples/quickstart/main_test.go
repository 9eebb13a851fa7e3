package main_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func TestWorkersTakeTurns(t *testing.T) {
	program := filepath.Join(t.TempDir(), "quickstart")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	environments := map[string]func(*testing.T) []string{
		"embedded": func(*testing.T) []string { return nil },
		"real":     func(t *testing.T) []string { return []string{"-connect", zktest.Shared(t).Addr() + "/chroot"} },
	}
	for name, args := range environments {
		t.Run(name, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), program, append(args(t), "-workers", "3", "-rounds", "2")...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			check(t, string(out))
		})
	}
	out, err := exec.Command(program, "-workers", "0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "-workers 0") {
		t.Errorf("-workers 0: %v, %s; want a refusal that names it", err, out)
	}
}

// check compares the output with the promise: no worker comes in between another worker's acquire
// and its release.
func check(t *testing.T, out string) {
	t.Helper()
	turn := regexp.MustCompile(`(?m)^worker (\d): (acquired|  works|releases)`)
	steps := turn.FindAllStringSubmatch(out, -1)
	if len(steps) != 3*3*2 {
		t.Fatalf("%d lines of workers, want 18:\n%s", len(steps), out)
	}
	for i := 0; i < len(steps); i += 3 {
		a, w, r := steps[i], steps[i+1], steps[i+2]
		if a[2] != "acquired" || w[2] != "  works" || r[2] != "releases" || a[1] != w[1] || w[1] != r[1] {
			t.Fatalf("no turn at line %d:\n%s", i, out)
		}
	}
	for _, want := range []string{"lock count 2", "TryLock is refused", "held by another owner", "Lock times out", "deadline exceeded"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
}
