package zkenv

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/docent-go/docent/testing/zkserver"
)

// Variables of the environment that decide what the embedded servers are.
const (
	// embeddedVariable is the version of all embedded servers, as [zkserver.WithVersion] takes it, or
	// "keeper" or "keeper-silent": then they know the operations that ClickHouse Keeper knows, and
	// answer others as unimplemented or close the connection. Without it, each test draws a version.
	embeddedVariable = "ZK_EMBEDDED"

	// seedVariable is the seed of these draws, a number. Without it, each process draws one.
	seedVariable = "ZK_EMBEDDED_SEED"
)

// isKeeper reports whether the embedded servers are to lack what ClickHouse Keeper lacks.
func isKeeper() bool { return strings.HasPrefix(os.Getenv(embeddedVariable), "keeper") }

// versions are those that differ for the recipes and know all that the recipes use.
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
// ZK_EMBEDDED is a version, it is that one. ClickHouse Keeper is for [ForEach] alone, whose clients know
// what it lacks before the test begins.
func DrawVersion(t testing.TB) []zkserver.Option {
	t.Helper()
	if isKeeper() {
		return drawVersion(t, nil, "")
	}
	return drawVersion(t, nil, os.Getenv(embeddedVariable))
}

// drawVersion returns the options of the version of the name. If it is "", it draws one of all, or of
// versions if there are none.
func drawVersion(t testing.TB, all []string, name string) []zkserver.Option {
	t.Helper()
	if name != "" && all != nil && !slices.Contains(all, name) {
		t.Skipf("SKIPPED, NOT TESTED: %s=%s, and the test is for %v", embeddedVariable, name, all)
	}
	if all == nil {
		all = versions()
	}
	if name == "" {
		n, err := seed()
		if err != nil {
			t.Fatal(err)
		}
		h := fnv.New64a()
		h.Write([]byte(t.Name()))
		name = all[rand.New(rand.NewPCG(n, h.Sum64())).IntN(len(all))]
	}
	t.Logf("embedded server of version %s: %s=%s", name, embeddedVariable, name)
	switch name {
	case "keeper":
		return []zkserver.Option{zkserver.WithoutOpcodes(zkserver.KeeperLacks()...)}
	case "keeper-silent":
		return []zkserver.Option{zkserver.WithoutOpcodes(zkserver.KeeperLacks()...), zkserver.WithoutReplyToUnknown()}
	}
	return []zkserver.Option{zkserver.WithVersion(name)}
}
