package interop_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	report "github.com/docent-go/docent/examples/port-from-curator"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/leader"
	"github.com/docent-go/docent/testing/zktest"
)

// A process is an example, in Java or in Go.
type process struct {
	in    io.WriteCloser
	lines *bufio.Scanner
}

// startJava starts the example in the Java file.
func startJava(t *testing.T, file string, args ...string) *process {
	t.Helper()
	curator.require(t)
	command := must.Get(locateCurator())(t)
	command[len(command)-1] = filepath.Join("../../examples", file)
	return start(t, append(command, args...))
}

func start(t *testing.T, command []string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	in, out := must.Get(cmd.StdinPipe())(t), must.Get(cmd.StdoutPipe())(t)
	must.OK(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has ended, and the process with it
	return &process{in, bufio.NewScanner(out)}
}

// next gives the process the next line.
func (p *process) next(t *testing.T, line string) {
	t.Helper()
	must.Get(io.WriteString(p.in, line+"\n"))(t)
}

// want reads the next line. The test's own deadline bounds that.
func (p *process) want(t *testing.T, line string) {
	t.Helper()
	if got := p.read(t); got != line {
		t.Fatalf("the process printed %q, want %q", got, line)
	}
}

func (p *process) read(t *testing.T) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("the process has ended: %v", p.lines.Err())
	}
	return p.lines.Text()
}

// TestAPortWithItsJavaClass runs a Java class and its port at the same time, on one lock. Whichever
// writes makes the other busy after 5 seconds, and after its end the other writes.
func TestAPortWithItsJavaClass(t *testing.T) {
	t.Parallel()
	connect := zktest.Shared(t).Addr() + lastingPathOf(t)
	java := startJava(t, "port-from-curator/ReportJob.java", connect)
	java.want(t, "connected")
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

// TestAPortLeadsAfterItsJavaClass runs PriceService.java and its port at the same time. The port follows the
// prices of the Java leader, round by round. When Java ends, it leads, and continues the count of the rounds.
func TestAPortLeadsAfterItsJavaClass(t *testing.T) {
	t.Parallel()
	connect := zktest.Shared(t).Addr() + lastingPathOf(t)
	java := startJava(t, "price-service/PriceService.java", connect, "java-1")
	java.want(t, "/prices/apple is 5") // it leads
	java.want(t, "/prices/pear is 4")

	binary := filepath.Join(t.TempDir(), "price-service")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../../examples/price-service", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	port := start(t, []string{binary, "-connect", connect})
	round := 0
	next := func() {
		t.Helper()
		var price int
		line := port.read(t)
		if _, err := fmt.Sscanf(line, "/prices/apple is %d", &price); err != nil {
			t.Fatalf("the port printed %q", line)
		}
		if round > 0 && price != 5*(round+1) {
			t.Errorf("apples cost %d after round %d, want %d", price, round, 5*(round+1))
		}
		round = price / 5
		port.want(t, fmt.Sprintf("/prices/pear is %d", 4*round))
	}
	client := must.Get(framework.NewClient(connect))(t)
	defer client.Close()
	election := must.Get(leader.New(client, "/leader", leader.WithFormat(leader.Selector)))(t)
	leads := func() string {
		now, _ := must.Get2(election.Leader(t.Context()))(t)
		return string(now.Data)
	}
	next()
	if got := leads(); got != "java-1" {
		t.Errorf("%q leads, want Java", got)
	}
	must.OK(t, java.in.Close())
	zktest.Eventually(t, generous, "the port leads", func() bool { return leads() == "go-1" })
	for range 3 {
		next()
	}
}
