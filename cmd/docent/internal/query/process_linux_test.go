package query_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
)

// TestTheReaderHasGone: the commands end without an error, and end their sessions.
func TestTheReaderHasGone(t *testing.T) {
	t.Parallel()
	w, addr := processes(t)
	contender(t, w.client, "/locks/a"+guid+"lock-", strings.Repeat("x", 300_000))
	for _, args := range []string{"ls /locks -o json --data", "queue /locks/a --data -o json", "who /locks/a --data -o json", "queue /locks/a -o jsonl --data"} {
		script := `"$0" ` + args + ` --connect "$1" | head -c 10 >/dev/null; echo "codes ${PIPESTATUS[*]}"`
		cmd := apptest.Program("bash", "-c", script, os.Args[0], addr)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil || out.String() != "codes 0 0\n" || errs.String() != "" {
			t.Errorf("%s: %v, %q, %q", args, err, out.String(), errs.String())
		}
		if n := len(w.server.Sessions()); n != 1 {
			t.Errorf("%s: %d sessions remain, want the test's", args, n)
		}
	}
}

// TestJQ runs the examples of docs/command.md.
func TestJQ(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		apptest.Missing(t, "no jq, which runs the examples of docs/command.md")
	}
	w, addr := processes(t)
	page := must.Get(os.ReadFile("../../../../docs/command.md"))(t)
	_, rest, found := strings.Cut(string(page), "`jq` prints what you need")
	_, rest, _ = strings.Cut(rest, "```sh\n")
	script, _, _ := strings.Cut(rest, "```")
	if !found || strings.Count(script, "jq ") != 2 {
		t.Fatalf("the page has other examples: %q", script)
	}
	contender(t, w.client, "/locks/a"+guid+"lock-", metadata("batch-3", 811, "nightly", "p"))
	contender(t, w.client, "/locks/a"+guid+"lock-", metadata("web-1", 7, "", "q"))
	contender(t, w.client, "/locks/b"+guid+"lock-", metadata("web-2", 8, "", "r"))
	script = strings.Replace(script, "--held-longer 1h", "--held-longer 1ns", 1) // real time
	cmd := apptest.Program("bash", "-euc", `docent() { "$DOCENT" --connect "$ADDR" "$@"; }`+"\n"+script)
	cmd.Env = append(cmd.Env, "DOCENT="+os.Args[0], "ADDR="+addr)
	out, err := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != 3 || lines[0] != "/locks/a batch-3" || !strings.HasPrefix(lines[1], "batch-3 811 nightly ") || !strings.HasPrefix(lines[2], "web-2 8 - ") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// TestSearch_shows_its_progress on a terminal if it takes long, and takes the line away. In a pipe, or
// with --quiet, it shows none.
func TestSearch_shows_its_progress(t *testing.T) {
	t.Parallel()
	w, addr := processes(t)
	contender(t, w.client, "/locks/a"+guid+"lock-", metadata("batch-3", 811, "nightly", "p"))
	for i := range 150 { // at the rate, 3 s
		must.Get(w.client.Create(t.Context(), fmt.Sprintf("/other/%d", i), nil, framework.WithParents()))(t)
	}
	args := []string{"--connect", addr, "ls", "/", "--rate", "50"}
	p := asked(t, "docent: searching for ", args...)
	code, shown := p.answer(t, "")
	line, table, found := strings.Cut(shown, "LOCK")
	last := line[strings.LastIndex(strings.TrimRight(line, " \r"), "\r")+1:]
	if code != 0 || !found || !strings.Contains(table, "/locks/a") || !strings.HasSuffix(line, " \r") ||
		!strings.HasPrefix(last, "docent: searching for ") || !strings.Contains(last, ": 1 lock and ") {
		t.Errorf("exit code %d: %q", code, shown)
	}
	if r := plain(t, args...); r.code != 0 || r.err != "" {
		t.Errorf("in a pipe: exit code %d, %q", r.code, r.err)
	}
}

// TestRevoke_asks_on_a_terminal before it writes, because the request replaces the metadata.
func TestRevoke_asks_on_a_terminal(t *testing.T) {
	t.Parallel()
	w, addr := processes(t)
	holder := contender(t, w.client, "/locks/a"+guid+"lock-", metadata("batch-3", 811, "nightly", "p"))
	const question = "Ask to release? (y/n)"
	before := w.data(t, holder)
	p := asked(t, question, "--connect", addr, "revoke", "/locks/a")
	if code, shown := p.answer(t, "n\n"); code != 1 || w.data(t, holder) != before || !strings.Contains(shown, "replaces the metadata") {
		t.Errorf("refused: exit code %d, data %q, %s", code, w.data(t, holder), shown)
	}
	p = asked(t, question, "--connect", addr, "revoke", "/locks/a")
	if code, shown := p.answer(t, "y\n"); code != 0 || w.data(t, holder) != "__REVOKE__" {
		t.Errorf("agreed: exit code %d, data %q, %s", code, w.data(t, holder), shown)
	}
}

// A prompt is a break on a terminal, which has asked.
type prompt struct {
	*os.File
	cmd   *exec.Cmd
	shown chan string // all that was shown, at the end
}

// asked starts break on a terminal, and returns when it has asked the question.
func asked(t *testing.T, question string, args ...string) *prompt {
	t.Helper()
	own, tty := must.Get2(pty.Open())(t)
	p := &prompt{File: own, cmd: apptest.Program(os.Args[0], args...), shown: make(chan string, 1)}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = tty, tty, tty
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.OK(t, p.cmd.Start())
	must.OK(t, tty.Close())
	ready := make(chan struct{})
	go func() { // ends with the process, which has the terminal's other end
		var shown strings.Builder
		text := make([]byte, 4096)
		for {
			n, err := own.Read(text)
			before := strings.Contains(shown.String(), question)
			shown.Write(text[:n])
			if !before && strings.Contains(shown.String(), question) {
				close(ready)
			}
			if err != nil {
				p.shown <- shown.String()
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // or it has ended
		_ = p.cmd.Wait()
		_ = own.Close()
	})
	select {
	case <-ready:
	case text := <-p.shown:
		t.Fatalf("it did not ask: %s", text)
	case <-time.After(20 * time.Second):
		t.Fatal("it did not ask within 20 s")
	}
	return p
}

// answer types the line, and returns the exit code and what was shown.
func (p *prompt) answer(t *testing.T, line string) (code int, shown string) {
	t.Helper()
	must.Get(p.WriteString(line))(t)
	_ = p.cmd.Wait() // the code says it
	return p.cmd.ProcessState.ExitCode(), <-p.shown
}

// TestBreak_asks_on_a_terminal, and deletes nothing unless the name's end is typed.
func TestBreak_asks_on_a_terminal(t *testing.T) {
	t.Parallel()
	w, addr := processes(t)
	first := w.target(t, contender(t, w.client, "/locks/a"+guid+"lock-", metadata("h\x1b[2J", 1, "", "p")))
	next := w.target(t, contender(t, w.client, "/locks/a"+guid+"lock-", ""))
	args := []string{"break", first.path, "--session", first.session, "--connect", addr}
	for name, line := range map[string]string{
		"another name": "000001\n", "nothing": "\n", "the whole name": first.path + "\n", "yes": "yes\n", "the end of the input": "000000\x04\x04", "Ctrl-C": "\x03",
	} {
		code, shown := asked(t, "Type the last 6 characters", args...).answer(t, line)
		if code == 0 || name == "Ctrl-C" && code != 130 || !w.exists(t, first.path) || !w.exists(t, next.path) {
			t.Errorf("%s: exit code %d: %s", name, code, shown)
		}
	}
	code, shown := asked(t, "Type the last 6 characters", args...).answer(t, "000000\n")
	if code != 0 || w.exists(t, first.path) || !w.exists(t, next.path) || !strings.Contains(shown, "deleted /locks/a") {
		t.Errorf("exit code %d: %s", code, shown)
	}
	if strings.Contains(shown, "\x1b") {
		t.Errorf("a terminal would obey it: %q", shown)
	}
}

// TestBreak_asks_for_the_protected_context first, on a terminal.
func TestBreak_asks_for_the_protected_context(t *testing.T) {
	t.Parallel()
	w, addr := processes(t)
	of := w.target(t, contender(t, w.client, "/locks/a"+guid+"lock-", ""))
	file := filepath.Join(t.TempDir(), "config.json")
	text := fmt.Sprintf(`{"current":"prod","contexts":{"prod":{"connect":%q,"protected":true}}}`, addr)
	must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	args := []string{"--config", file, "break", of.path, "--session", of.session, "--yes", "--czxid", of.czxid}
	for _, test := range []struct {
		typed string
		code  int
	}{{"test\n", 1}, {"prod\n", 0}} {
		code, shown := asked(t, "The context is protected. Type its name", args...).answer(t, test.typed)
		if code != test.code || w.exists(t, of.path) != (code != 0) {
			t.Errorf("%q: exit code %d: %s", test.typed, code, shown)
		}
	}
}

// TestBreak_spares_a_successor that takes the znode's name while break waits for the answer. An unfair
// mutex has one name.
func TestBreak_spares_a_successor(t *testing.T) {
	t.Parallel()
	w, addr := processes(t)
	hold := func() target {
		data := `{"docent":1,"host":"h","attempt":"A"}`
		must.Get(w.client.Create(t.Context(), "/role", []byte(data), framework.Ephemeral()))(t)
		return w.target(t, "/role")
	}
	first := hold()
	p := asked(t, "characters of its name", "break", "/role", "--session", first.session, "--connect", addr)
	must.OK(t, w.client.Delete(t.Context(), "/role"))
	hold()
	if code, shown := p.answer(t, "role\n"); code != 1 || !w.exists(t, "/role") || !strings.Contains(shown, "nothing was done") {
		t.Errorf("exit code %d: %s", code, shown)
	}
	second := w.target(t, "/role")
	p = asked(t, "characters of its name", "break", "/role", "--session", second.session, "--connect", addr)
	must.OK(t, w.client.Delete(t.Context(), "/role"))
	if code, shown := p.answer(t, "role\n"); code != 0 || !strings.Contains(shown, "gone already: /role") {
		t.Errorf("exit code %d: %s", code, shown)
	}
}
