package zkenv

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/docent-go/docent/testing/zkserver"
)

// Variables of the environment that decide what the embedded servers are.
const (
	// embeddedVariable is the version of all embedded servers, as [zkserver.WithVersion] takes it.
	// Without it, each test draws a version.
	embeddedVariable = "ZK_EMBEDDED"

	// seedVariable is the seed of these draws, a number. Without it, each process draws one.
	seedVariable = "ZK_EMBEDDED_SEED"
)

// versions are those that differ for the recipes.
func versions() []string {
	return []string{"3.6.0", "3.8.0", zkserver.DefaultVersion, "3.8.4", "3.9.6"}
}

// seed is the process's.
var seed = sync.OnceValues(func() (uint64, error) { //nolint:gochecknoglobals // a process has one
	text := os.Getenv(seedVariable)
	if text == "" {
		return rand.Uint64() >> 32, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("zkenv: %s=%q: must be a number", seedVariable, text)
	}
	return n, nil
})

// DrawVersion returns the options that make an embedded server one of a version drawn for the test, by
// the seed ZK_EMBEDDED_SEED and the test's name. It logs the version, and how to have it again. If
// ZK_EMBEDDED is a version, it is that one. [Versions] restricts it as it restricts [ForEach]; other
// options are of no use. It fails the test if an option is faulty.
func DrawVersion(t testing.TB, opts ...Option) []zkserver.Option {
	t.Helper()
	cfg, err := newConfig(opts)
	if err != nil {
		t.Fatal(err)
	}
	return []zkserver.Option{zkserver.WithVersion(cfg.drawVersion(t))}
}

// drawVersion returns the version that the environment names, or else a drawn one. It skips the test if
// that version is none of the test's.
func (cfg config) drawVersion(t testing.TB) string {
	t.Helper()
	name := os.Getenv(embeddedVariable)
	all := cfg.versions
	if name != "" && all != nil && !slices.Contains(all, name) {
		t.Skipf("SKIPPED, NOT TESTED: %s=%s, and the test is for %v", embeddedVariable, name, all)
	}
	if all == nil {
		all = versions()
	}
	if name == "" {
		name = drawn(t, all)
	}
	t.Logf("embedded server of version %s: %s=%s", name, embeddedVariable, name)
	return name
}

// drawn returns the version that is drawn for the test.
func drawn(t testing.TB, all []string) string {
	t.Helper()
	n, err := seed()
	if err != nil {
		t.Fatal(err)
	}
	h := fnv.New64a()
	h.Write([]byte(t.Name()))
	return all[rand.New(rand.NewPCG(n, h.Sum64())).IntN(len(all))]
}
