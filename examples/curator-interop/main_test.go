package main

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/docent-go/docent/examples/harness"
)

// A page is what several write at the same time.
type page struct {
	mu   sync.Mutex // guards following
	text bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func TestNoCountIsLostBetweenTheTwo(t *testing.T) {
	t.Parallel()
	zk, err := harness.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Embedded.Close()
	var out page
	if err := run(t.Context(), zk, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.text.String())
	}
	printed := out.text.String()
	if strings.Contains(printed, "*** NO JAVA") {
		if os.Getenv("ZK_TEST") == "required" {
			t.Fatal(printed)
		}
		t.Skip("SKIPPED, NOT TESTED: Java or Curator is not installed")
	}
	if !strings.HasSuffix(printed, "counted 20, none lost\n") || strings.Count(printed, "docent counts") != rounds ||
		strings.Count(printed, "Curator counts") != rounds {
		t.Errorf("printed:\n%s\nwant 10 counts of each, and none lost", printed)
	}
}

func TestWithoutJavaItSaysSo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	zk, err := harness.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Embedded.Close()
	var out page
	if err := run(t.Context(), zk, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.text.String(); !strings.HasPrefix(got, "*** NO JAVA") || !strings.HasSuffix(got, "counted 10, none lost\n") {
		t.Errorf("printed:\n%s", got)
	}
}
