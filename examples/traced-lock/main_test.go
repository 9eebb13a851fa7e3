package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/docent-go/docent/examples/harness"
)

// operation is the line of an operation of the client: how many there are may
// differ from run to run.
var operation = regexp.MustCompile(`(?m)^ +(create|delete|watch|getChildren|getData|sync)  .*\n`)

// TestTree holds the trees that the program prints against what they have to be, the numbers aside.
func TestTree(t *testing.T) {
	t.Parallel()
	log, trees, _ := strings.Cut(harness.RunInBubble(t, run), "\n\n")
	for _, line := range []string{"billing.zk.lock  acquired", "checkout.zk.lock  queued", "checkout.zk.lock  blocked"} {
		if !strings.Contains(log, line) {
			t.Errorf("no line %q in the log:\n%s", line, log)
		}
	}
	traces := regexp.MustCompile(`(?m)^trace ([0-9a-f]{32}), service (\w+)$`).FindAllStringSubmatch(trees, -1)
	if len(traces) != 2 || traces[0][2] != "billing" || traces[1][2] != "checkout" {
		t.Fatalf("want a trace of billing and one of checkout:\n%s", trees)
	}
	got := operation.ReplaceAllString(trees, "")
	got = regexp.MustCompile(`fence \d+`).ReplaceAllString(got, "fence N")
	got = regexp.MustCompile(`  [0-9.]+(µs|ms|s)\b`).ReplaceAllString(got, "  TIME")
	want := fmt.Sprintf(`trace %[1]s, service billing
POST /billing  TIME
  lock.acquire stock  TIME  acquired  fence N
  lock.hold  TIME  fence N
    update stock  TIME
    lock.release  TIME

trace %[2]s, service checkout
POST /checkout  TIME
  lock.acquire stock  TIME  acquired  fence N
    lock.wait  TIME  place 1
      <- blocked by POST /billing of service billing, which held it for 300ms: trace %[1]s
  lock.hold  TIME  fence N
    update stock  TIME
    lock.release  TIME

`, traces[0][1], traces[1][1])
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s\nall:\n%s", got, want, trees)
	}
}
