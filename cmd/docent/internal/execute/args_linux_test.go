package execute_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/execute"
	"github.com/docent-go/docent/testing/zkserver"
)

// The words after "--" reach the command byte for byte, and no shell sees them. The separator of the
// fuzzed text is a zero byte, which no argument can have.
func FuzzArguments(f *testing.F) {
	f.Add("a\x00b c\x00$HOME `id` \"'")
	f.Add("--\x00--help\x00-n\x00--lock")
	f.Add("\x00\x00")
	f.Add("\xff\xfe\x00\r\n\x00*\x00~")
	f.Add("exec\x00--\x00__guard\x00__start")
	srv, err := zkserver.Start()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = srv.Close() })
	addr, err := srv.Listen("127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 10_000 {
			t.Skip("longer than a test of words has to be")
		}
		words := strings.Split(text, "\x00")
		want := strings.Join(words, "\x00") + "\x00"
		// The format is used once for each word.
		p := run(t, addr, append([]string{"--semaphore", "100", "/args", "--", "printf", `%s\0`}, words...)...)
		if p.ends(t, "it", 0); p.out.String() != want {
			t.Errorf("output %q, want %q", p.out.String(), want)
		}
	})
}

// The usage errors name what is wrong, all of it.
func TestUsage_names_all_faults(t *testing.T) {
	t.Parallel()
	p := run(t, "127.0.0.1:1", "--read", "--write", "-n", "-w", "1s", "--stop-signal", "x", "--on-lost-signal", "99", "--leftovers", "eat",
		"--on-suspend", "?", "-E", "256", "/a", "b", "--", "true")
	p.ends(t, "it", 125)
	for _, want := range []string{
		"at most one", "-n and -w", "--stop-signal", "--on-lost-signal", "--leftovers", "--on-suspend", "--conflict-exit-code 256", `"b"`,
	} {
		if !strings.Contains(p.err.String(), want) {
			t.Errorf("no %s in %s", want, p.err.String())
		}
	}
}

// The command's streams must be files: a test or a caller that gives others is refused.
func TestStreams_must_be_files(t *testing.T) {
	t.Parallel()
	var out, errOut bytes.Buffer
	app := &cli.App{In: strings.NewReader(""), Out: &out, Err: &errOut}
	code := app.Main(t.Context(), []string{"exec", "--connect", "127.0.0.1:1", "/a", "--", "true"}, execute.New)
	if code != 125 || !strings.Contains(errOut.String(), "are no files") {
		t.Errorf("exit code %d: %s", code, errOut.String())
	}
}
