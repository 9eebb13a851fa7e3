//go:build unix

package watch_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
	"github.com/docent-go/docent/testing/zktest"
)

// eventually waits until what holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	zktest.Eventually(t, 20*time.Second, what, holds)
}

// held returns the address of a server with a holder of /locks/report, and its lease.
func held(t *testing.T) (string, *lock.Lease) {
	t.Helper()
	addr := must.Get(zkserver.Run(t, zkenv.DrawVersion(t)...).Listen("127.0.0.1:0"))(t)
	m := must.Get(lock.NewMutex(apptest.Client(t, addr), "/locks/report"))(t)
	l := must.Get(m.Lock(lock.ContextWithOwner(t.Context(), lock.NewOwner("nightly"))))(t)
	return addr, l
}

// The reader that has gone is noticed at the next line.
func TestWatch_ends_with_its_reader(t *testing.T) {
	t.Parallel()
	addr, l := held(t)
	script := `"$0" watch --connect "$1" /locks -o jsonl | head -1; echo "codes ${PIPESTATUS[*]}"`
	cmd := apptest.Program("bash", "-c", script, os.Args[0], addr)
	var out, errs apptest.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	must.OK(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	eventually(t, "a line is shown", func() bool { return strings.Contains(out.String(), "\n") })
	must.OK(t, l.Release(t.Context()))
	if err := cmd.Wait(); err != nil || !strings.HasSuffix(out.String(), "codes 0 0\n") || errs.String() != "" {
		t.Errorf("%v, %q, %q", err, out.String(), errs.String())
	}
}
