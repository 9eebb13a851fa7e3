//go:build !docent_plain

package waitqueue //nolint:testpackage // as listings_test.go

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestWithoutShortcuts deletes the shortcuts: a build with the tag has none of their files. It fails if an
// attempt names anything of theirs, or if a promise of the locks needs them.
func TestWithoutShortcuts(t *testing.T) {
	t.Parallel()
	const promises = "^(TestContract|TestKindsOnOnePath|TestQueueOfSides|TestDowngrade.*|TestDeletionOfThePredecessorUnseen" +
		"|TestHandOffWhenAnOperatorDeletesBoth)$"
	run := exec.CommandContext(t.Context(), "go", "test", "-tags=docent_plain", "-count=1", "-timeout=5m", "-run="+promises, "../../lock")
	run.Env = append(os.Environ(), "ZK_TEST=none")
	if out, err := run.CombinedOutput(); err != nil || strings.Contains(string(out), "no tests to run") {
		t.Errorf("%v: %s", err, out)
	}
}
