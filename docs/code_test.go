package docs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// The first program of docs/service.md is examples/service, whose tests run it.
func TestTheServiceIsTheExample(t *testing.T) {
	t.Parallel()
	program := must.Get(os.ReadFile("../examples/service/main.go"))(t)
	for _, b := range read(t, "docs/service.md").blocks {
		if b.language == "go" {
			if b.text != string(program) {
				t.Errorf("docs/service.md shows\n%s\nexamples/service/main.go is\n%s", b.text, program)
			}
			break
		}
	}
	if n := strings.Count(string(program), "\n"); n > 60 {
		t.Errorf("the service has %d lines, want at most 60", n)
	}
}
