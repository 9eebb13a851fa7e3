package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
)

func TestARunGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := settings{
		of: []string{"testdata/victim"}, factor: 5, slack: time.Minute,
		log: filepath.Join(t.TempDir(), "log"), out: &out,
	}
	// The test checks what sum returns, and ignores what main.go prints.
	if survivors, err := s.run(t.Context(), []string{victim}); err != nil || survivors != 1 {
		t.Fatalf("%d survivors, %v, want one\n%s", survivors, err, out.String())
	}
	const counts = "2 mutants: 1 killed, 0 hung, 1 survived, 0 do not compile\n"
	if !strings.HasSuffix(out.String(), counts) {
		t.Errorf("want %q at the end of\n%s", counts, out.String())
	}
	first := lines(t, s.log)
	if len(first) != 2 {
		t.Fatalf("want a line for each of two mutants: %q", first)
	}
	for _, again := range []bool{false, true} {
		s.again = again
		out.Reset()
		if survivors, err := s.run(t.Context(), []string{victim}); err != nil || survivors != 1 || !strings.HasSuffix(out.String(), counts) {
			t.Errorf("again %v: %d survivors, %v, want %q at the end of\n%s", again, survivors, err, counts, out.String())
		}
		tried := lines(t, s.log)[len(first):]
		if !again && len(tried) > 0 {
			t.Errorf("tried twice: %q", tried)
		}
		if again && (len(tried) != 1 || !strings.Contains(tried[0], "main.go")) {
			t.Errorf("tried again: %q, want what survived", tried)
		}
	}
}

func TestALogThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "log")
	for _, line := range []string{"some text", "a.go:1:1: < becomes <=\t9\t1\t\"\""} {
		must.OK(t, os.WriteFile(name, []byte(line+"\n"), 0o600))
		if _, err := openLog(name, false); err == nil {
			t.Errorf("%q is taken for a finding", line)
		}
	}
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
