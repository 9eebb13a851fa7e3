package interop_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	report "github.com/docent-go/docent/examples/port-from-curator"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

const javaJob = "../../examples/port-from-curator/ReportJob.java"

// A javaProcess runs ReportJob.java.
type javaProcess struct {
	in    io.Writer
	lines *bufio.Scanner
}

func startJavaJob(t *testing.T, connect string) *javaProcess {
	t.Helper()
	curator.require(t)
	command := must.Get(locateCurator())(t)
	command[len(command)-1] = javaJob
	cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], connect)...)
	cmd.Stderr = os.Stderr
	in, out := must.Get(cmd.StdinPipe())(t), must.Get(cmd.StdoutPipe())(t)
	must.OK(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has ended, and the process with it
	p := &javaProcess{in, bufio.NewScanner(out)}
	p.want(t, "connected")
	return p
}

// next gives the process the next line.
func (p *javaProcess) next(t *testing.T, line string) {
	t.Helper()
	must.Get(io.WriteString(p.in, line+"\n"))(t)
}

// want reads the next line. The test's own deadline bounds that.
func (p *javaProcess) want(t *testing.T, line string) {
	t.Helper()
	if !p.lines.Scan() || p.lines.Text() != line {
		t.Fatalf("Java: %q (%v), want %q", p.lines.Text(), p.lines.Err(), line)
	}
}

// TestAPortBesideItsJavaClass runs a Java class and its port at the same time, on one lock. Whichever
// writes makes the other busy after 5 seconds, and after its end the other writes.
func TestAPortBesideItsJavaClass(t *testing.T) {
	t.Parallel()
	connect := zktest.Shared(t).Addr() + lastingPathOf(t)
	java := startJavaJob(t, connect)
	client := must.Get(framework.NewClient(connect))(t)
	defer client.Close()
	job := must.Get(report.NewJob(client))(t)
	run := func(wantDone bool, write func()) time.Duration {
		t.Helper()
		wrote, start := false, time.Now()
		done, err := job.Run(t.Context(), func(held context.Context) error {
			wrote = true
			write()
			return held.Err()
		})
		if err != nil || done != wantDone || wrote != wantDone {
			t.Errorf("Go: %v, %v, and wrote is %v; want %v", done, err, wrote, wantDone)
		}
		return time.Since(start)
	}

	java.next(t, "run")
	java.want(t, "writing")
	if waited := run(false, func() {}); waited < 5*time.Second {
		t.Errorf("Go was busy after %v, want 5 seconds at least", waited)
	}
	java.next(t, "written")
	java.want(t, "done")

	run(true, func() {
		java.next(t, "run")
		java.want(t, "busy")
	})

	java.next(t, "run")
	java.want(t, "writing")
	java.next(t, "written")
	java.want(t, "done")
}
