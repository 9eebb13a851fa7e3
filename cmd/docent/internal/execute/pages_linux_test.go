package execute_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/execute"
	"github.com/docent-go/docent/internal/must"
)

// pageScripts returns the scripts of a section of docs/command.md.
func pageScripts(t *testing.T, section string) []string {
	t.Helper()
	page := must.Get(os.ReadFile("../../../../docs/command.md"))(t)
	_, text, found := strings.Cut(string(page), "\n## "+section+"\n")
	if !found {
		t.Fatalf("the page has no section %s", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var scripts []string
	for _, fence := range regexp.MustCompile("(?s)```(?:ba)?sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		scripts = append(scripts, fence[1])
	}
	return scripts
}

// inShell returns a shell that runs the script in a folder with report.sh, and knows docent by its name.
func inShell(t *testing.T, addr, script, report string) (cmd *exec.Cmd, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"docent":    "#!/bin/sh\n" + apptest.ProgramVariable + "=1 exec " + quoted(absolute(t, os.Args[0])) + ` "$@"`,
		"report.sh": "#!/bin/sh\n" + report,
	} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o700))
	}
	cmd = exec.Command("bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "DOCENT_CONNECT="+addr)
	return cmd, dir
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	return must.Get(filepath.Abs(path))(t)
}

// The script of the page runs unchanged: with a release at its end, and with a loss during its work. It writes to
// its standard output after both. If it is killed, it keeps no lock.
func TestHold_script_of_the_page(t *testing.T) {
	t.Parallel()
	_, addr := serve(t)
	c := apptest.Client(t, addr)
	scripts := pageScripts(t, "hold")
	if len(scripts) != 1 {
		t.Fatalf("%d scripts, want one", len(scripts))
	}
	for name, want := range map[string]string{"released": "code 0\n", "lost": "code 121\n", "killed": ""} {
		t.Run(name, func(t *testing.T) { // one after the other: the page's script has one path
			cmd, dir := inShell(t, addr, scripts[0]+"\necho \"code $?\"", "echo >begun; while ! [ -e end ]; do sleep 0.05; done")
			var out, errOut apptest.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errOut
			must.OK(t, cmd.Start())
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			await(t, filepath.Join(dir, "begun"))
			switch name {
			case "killed":
				must.OK(t, cmd.Process.Kill()) // report.sh has the pipe to docent, too
			case "lost":
				must.OK(t, c.Delete(t.Context(), contenders(t, c, "/locks/report")[0].Znode))
				eventually(t, "docent says so", func() bool { return strings.Contains(errOut.String(), "node_deleted") })
			}
			must.OK(t, os.WriteFile(filepath.Join(dir, "end"), nil, 0o600))
			_ = cmd.Wait() // the output says it
			if name == "killed" {
				eventually(t, "docent releases the lock", func() bool { return len(contenders(t, c, "/locks/report")) == 0 })
			}
			if out.String() != want || len(contenders(t, c, "/locks/report")) > 0 {
				t.Errorf("output %q, want %q\n%s", out.String(), want, errOut.String())
			}
		})
	}
}

// The help has the page's script, too.
func TestHold_help_has_the_script_of_the_page(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	app := &cli.App{In: strings.NewReader(""), Out: &out, Err: &out}
	app.Main(t.Context(), []string{"hold", "--help"}, execute.NewHold)
	help := strings.Join(strings.Fields(out.String()), " ")
	if script := strings.Join(strings.Fields(pageScripts(t, "hold")[0]), " "); !strings.Contains(help, script) {
		t.Errorf("the help lacks the page's script:\n%s", out.String())
	}
}
