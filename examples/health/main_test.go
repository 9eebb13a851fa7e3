package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/docent-go/docent/examples/harness"
	"github.com/docent-go/docent/framework"
)

func TestAnOutageCostsReadinessAndNotLiveness(t *testing.T) {
	t.Parallel()
	zk, err := harness.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	defer zk.Embedded.Close()
	var out bytes.Buffer
	if err := run(t.Context(), zk, &out, ""); err != nil {
		t.Fatal(err)
	}
	rest := out.String()
	for _, want := range []string{
		"connected          /readyz  200", "connected          /livez   200",
		"without ZooKeeper  /readyz  503", "without ZooKeeper  /livez   200",
		"connected again    /readyz  200", "connected again    /livez   200",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("no %q at its place in:\n%s", want, out.String())
		}
		rest = after
	}
}

func TestAClosedClientIsNotAlive(t *testing.T) {
	t.Parallel()
	client, err := framework.NewClient("zookeeper.test")
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	handler(client).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/livez", nil))
	if answer.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", answer.Code)
	}
}

// The manifest asks for what the service answers.
func TestTheManifestAsksForWhatTheServiceAnswers(t *testing.T) {
	t.Parallel()
	manifest, err := os.ReadFile("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"-listen", ":8080"`, "containerPort: 8080",
		"readinessProbe:\n            httpGet: {path: /readyz, port: http}",
		"livenessProbe:\n            httpGet: {path: /livez, port: http}",
	} {
		if !bytes.Contains(manifest, []byte(want)) {
			t.Errorf("kubernetes.yaml has no %q", want)
		}
	}
}
