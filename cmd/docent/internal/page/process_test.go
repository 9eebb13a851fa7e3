package page_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

// A program is a docent process that serves the page.
type program struct {
	*stand
	*exec.Cmd
	url       string // with the token
	out, errs apptest.Buffer
}

// startProgram starts "docent serve" with the arguments, and waits for the page's URL. The process ends with
// the test.
func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{Cmd: apptest.Program(os.Args[0], append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)}
	p.Stdout, p.Stderr = &p.out, &p.errs
	must.OK(t, p.Start())
	t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = p.Wait()                          // the signal is its end
		if t.Failed() {
			t.Logf("docent's messages:\n%s", p.errs.String())
		}
	})
	zktest.Eventually(t, 20*time.Second, "the page's URL", func() bool { return strings.Contains(p.out.String(), "\n") })
	p.url = strings.TrimSpace(p.out.String())
	base, token, _ := strings.Cut(p.url, "/#token=")
	p.stand = &stand{base: base, token: token}
	return p
}
