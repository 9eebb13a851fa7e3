package version_test

import (
	"regexp"
	"testing"

	"github.com/docent-go/docent/internal/version"
)

// A test binary is built from the module itself, which has a version or none.
func TestModuleHasAVersion(t *testing.T) {
	t.Parallel()
	if got := version.Module(); got != version.Unknown && !regexp.MustCompile(`^v\d+\.\d+\.\d+`).MatchString(got) {
		t.Errorf("version %q", got)
	}
}
