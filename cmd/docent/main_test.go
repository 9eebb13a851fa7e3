package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// docent runs the command without an ensemble.
func docent(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	app := &cli.App{In: strings.NewReader(""), Out: &stdout, Err: &stderr}
	code = app.Main(t.Context(), args, commands()...)
	return code, stdout.String(), stderr.String()
}

// names returns the names of all commands.
func names(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, command := range commands() {
		all = append(all, command(&cli.App{}).Name())
	}
	return append(all, "version", "completion", "help")
}

var flagName = regexp.MustCompile(`--[a-z][a-z-]*[a-z]`)

// The page of the command names each command, and no flag that does not exist.
func TestThePageOfTheCommand(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	page, known := string(text), ""
	for _, name := range names(t) {
		_, out, _ := docent(t, name, "--help")
		known += out
		if !strings.Contains(page, "docent "+name) && !strings.Contains(page, "`"+name+" ") {
			t.Errorf("docs/command.md does not name %q", name)
		}
	}
	flags := flagName.FindAllString(page, -1)
	for _, flag := range flags {
		if !strings.Contains(known, flag+" ") {
			t.Errorf("docs/command.md names the flag %s, which no command has", flag)
		}
	}
	if len(flags) < 50 {
		t.Errorf("%d flags found on the page; the pattern has come to miss them", len(flags))
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words string // the last one is to be completed
		want  string // all proposals, and whether the shell may add file names (0) or not (4)
	}{
		{"qu", "queue :4"},
		{"ls ", ":4"},
		{"ls --kind ", "mutex readwrite semaphore leader exclusive :4"},
		{"ls --sort ", "path age waiting :4"},
		{"doctor -o ", "text wide json jsonl name svg dot :4"},
		{"doctor --fail-on ", "error warning info :4"},
		{"exec --leftovers ", "wait kill ignore :4"},
		{"exec --on-suspend ", "keep stop :4"},
		{"exec --status-file ", ":0"},
		{"exec ", ":4"},
		{"exec /locks/a -- ./re", ":0"},
		{"help ex", "exec exit-codes :4"},
	} {
		_, out, _ := docent(t, append([]string{"__complete"}, strings.Split(c.words, " ")...)...)
		var got []string
		for line := range strings.Lines(out) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t") // a description may follow
			got = append(got, word)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("docent %s: %q, want %q", c.words, text, c.want)
		}
	}
}

// Each error says what to do.
func TestWrongArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"lss", `unknown command "lss": did you mean ls?` + "\nTry: docent --help\n"},
		{"unheard-of", `unknown command "unheard-of"` + "\nTry: docent --help\n"},
		{"who", "docent who takes one argument, and got 0: docent who PATH [flags]\nTry: docent who --help\n"},
		{"tree /a /b", "docent tree takes one argument at most, and got 2: docent tree [ROOT] [flags]\nTry: docent tree --help\n"},
		{"version 1", "docent version takes no argument, and got 1: docent version [flags]\nTry: docent version --help\n"},
		{"help unheard-of", `no help about "unheard-of": docent --help lists the commands and topics` + "\nTry: docent help --help\n"},
	} {
		if code, out, errs := docent(t, strings.Fields(c.args)...); code != cli.CodeUsage || errs != "docent: "+c.want || out != "" {
			t.Errorf("docent %s: exit code %d, standard output %q, standard error %q", c.args, code, out, errs)
		}
	}
}
