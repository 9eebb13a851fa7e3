package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/docent-go/docent/testing/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// TestTree runs the program and holds the trees that it prints against what they
// have to be, the numbers aside.
func TestTree(t *testing.T) {
	program := filepath.Join(t.TempDir(), "traced-lock")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	environments := map[string]func(*testing.T) []string{
		"embedded": func(*testing.T) []string { return nil },
		"real":     func(t *testing.T) []string { return []string{"-connect", zktest.Shared(t).Addr() + "/chroot"} },
	}
	for name, args := range environments {
		t.Run(name, func(t *testing.T) { runAndCheck(t, program, args(t)) })
	}
}

func runAndCheck(t *testing.T, program string, args []string) {
	t.Helper()
	var sent atomic.Int32
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/v1/traces" {
			sent.Add(1)
		}
	}))
	defer collector.Close()

	var errOut strings.Builder
	cmd := exec.CommandContext(t.Context(), program, append(args, "-hold", "50ms")...)
	cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL)
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errOut.String())
	}
	checkTree(t, string(out))
	if sent.Load() < 2 {
		t.Errorf("%d requests to the collector, want one of each service", sent.Load())
	}
	for _, line := range []string{"billing.zk.lock  acquired", "checkout.zk.lock  queued", "checkout.zk.lock  blocked"} {
		if !strings.Contains(errOut.String(), line) {
			t.Errorf("no line %q in the log:\n%s", line, errOut.String())
		}
	}
}

// operation is the line of an operation of the client: how many there are may
// differ from run to run.
var operation = regexp.MustCompile(`(?m)^ +(create|delete|watch|getChildren|getData|sync)( /chroot)?  .*\n`)

func checkTree(t *testing.T, out string) {
	t.Helper()
	traces := regexp.MustCompile(`(?m)^trace ([0-9a-f]{32}), service (\w+)$`).FindAllStringSubmatch(out, -1)
	if len(traces) != 2 || traces[0][2] != "billing" || traces[1][2] != "checkout" {
		t.Fatalf("want a trace of billing and one of checkout:\n%s", out)
	}
	got := operation.ReplaceAllString(out, "")
	got = regexp.MustCompile(`fence \d+`).ReplaceAllString(got, "fence N")
	got = regexp.MustCompile(`\b([0-9]+m)?[0-9.]+(µs|ms|s)\b`).ReplaceAllString(got, "TIME")
	want := fmt.Sprintf(`
trace %[1]s, service billing
POST /billing  TIME
  lock.acquire stock  TIME  acquired  fence N
  lock.hold  TIME  fence N
    update stock  TIME
    lock.release  TIME

trace %[2]s, service checkout
POST /checkout  TIME
  lock.acquire stock  TIME  acquired  fence N
    lock.wait  TIME  place 1
      <- blocked by POST /billing of service billing, which held it for TIME: trace %[1]s
  lock.hold  TIME  fence N
    update stock  TIME
    lock.release  TIME

`, traces[0][1], traces[1][1])
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s\nall:\n%s", got, want, out)
	}
}
