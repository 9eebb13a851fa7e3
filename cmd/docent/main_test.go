package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zkserver"
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
	text := must.Get(os.ReadFile("../../docs/command.md"))(t)
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
		{"ls ", "/ :6"},
		{"ls x", ":6"},
		{"schema ", ":4"},
		{"exec --stop-signal ", "HUP INT QUIT KILL TERM ABRT USR1 USR2 ALRM PIPE :4"},
		{"exec --on-lost-signal K", "HUP INT QUIT KILL TERM ABRT USR1 USR2 ALRM PIPE :4"},
		{"ls --kind ", "mutex readwrite semaphore leader exclusive schedule :4"},
		{"ls --sort ", "path age waiting :4"},
		{"doctor -o ", "text wide json jsonl name svg dot :4"},
		{"doctor --fail-on ", "error warning info :4"},
		{"exec --leftovers ", "wait kill ignore :4"},
		{"exec --on-suspend ", "keep stop :4"},
		{"exec --status-file ", ":0"},
		{"exec ", "/ :6"},
		{"hold ", "/ :6"},
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

// The shell completes the paths of locks, but not those of contenders, and the names of contexts.
func TestCompletion_of_paths_and_contexts(t *testing.T) {
	t.Parallel()
	srv := zkserver.Run(t)
	addr := must.Get(srv.Listen("127.0.0.1:0"))(t)
	c := apptest.Client(t, addr)
	for _, path := range []string{"/locks/report", "/locks/rest/a", "/locks/import", "/locks/report/_c_90aa-lock-0000000001", "/locks/report/x__lock__0000000002", "/locks/a\u202eb"} {
		must.Get(c.Create(t.Context(), path, nil, framework.WithParents()))(t)
	}
	file := filepath.Join(t.TempDir(), "config.json")
	must.OK(t, os.WriteFile(file, []byte(`{"contexts":{"prod":{"connect":"`+addr+`/locks"},"test":{"connect":"`+addr+`"}}}`), 0o600))
	for words, want := range map[string]string{
		"--connect " + addr + " ls /":                "/locks /zookeeper :6",
		"--connect " + addr + " exec /locks/re":      "/locks/report /locks/rest :6",
		"--connect " + addr + " who /locks/report/":  ":6",
		"--connect " + addr + " queue /locks/rest/":  "/locks/rest/a :6",
		"--connect " + addr + " wait /locks/i":       "/locks/import :6",
		"--connect " + addr + " hold /absent/":       ":6",
		"--connect " + addr + " ls /locks/a":         ":6",
		"--config " + file + " --context prod ls /i": "/import :6",
		"--config " + file + " --context ":           "prod test :4",
		"--config /absent --context ":                ":4",
	} {
		_, out, _ := docent(t, append([]string{"__complete"}, strings.Split(words, " ")...)...)
		if got := strings.Join(strings.Fields(out), " "); got != want {
			t.Errorf("docent %s: %q, want %q", words, got, want)
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
