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

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/zkserver"
)

// Variables of the environment that decide what the embedded servers are.
const (
	// embeddedVariable is the version of all embedded servers, as [zkserver.WithVersion] takes it, or
	// "keeper" or "keeper-silent": then they know the operations that ClickHouse Keeper knew in 2023, and
	// answer others as unimplemented or close the connection. "keeper-2026" and "keeper-2026-silent" know
	// those of 2026. Without it, each test draws a version.
	embeddedVariable = "ZK_EMBEDDED"

	// seedVariable is the seed of these draws, a number. Without it, each process draws one.
	seedVariable = "ZK_EMBEDDED_SEED"
)

// versions are those that differ for the recipes.
func versions() []string { return complete() }

// complete returns the versions that know all operations that docent uses.
func complete() []string {
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
// ZK_EMBEDDED is a version or ClickHouse Keeper, it is that one. [Versions] and [AllOperations] restrict
// it as they restrict [ForEach]; other options are of no use. It fails the test if an option is faulty.
func DrawVersion(t testing.TB, opts ...Option) []zkserver.Option {
	t.Helper()
	cfg, err := newConfig(opts)
	if err != nil {
		t.Fatal(err)
	}
	return versionOptions(cfg.drawVersion(t))
}

// drawVersion returns the version that the environment names, or else a drawn one. It skips the test if
// that version is none of the test's.
func (cfg config) drawVersion(t testing.TB) string {
	t.Helper()
	name := os.Getenv(embeddedVariable)
	if cfg.everyOp && lacksOperations(name) {
		t.Skipf("SKIPPED, NOT TESTED: %s=%s lacks operations of ZooKeeper", embeddedVariable, name)
	}
	all := cfg.versions
	if name != "" && all != nil && !slices.Contains(all, name) {
		t.Skipf("SKIPPED, NOT TESTED: %s=%s, and the test is for %v", embeddedVariable, name, all)
	}
	if all == nil {
		all = versions()
	}
	if cfg.everyOp {
		all = slices.DeleteFunc(slices.Clone(all), lacksOperations)
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

// Acquaint has a client of the server find out what that lacks, as [ForEach] does with its clients. Each
// thing that a client finds out costs it a connection, which tests of single requests and moments do not
// expect. It does nothing if the server knows all operations that acquaint the client.
func Acquaint(t testing.TB, c *framework.Client, srv *zkserver.Server) {
	t.Helper()
	for _, op := range []proto.Opcode{proto.OpCreate2, proto.OpCreateContainer, proto.OpMultiRead, proto.OpAddWatch} {
		if srv.Knows(int32(op)) {
			continue
		}
		if err := c.AwaitConnected(t.Context()); err != nil {
			t.Fatal(err)
		}
		acquaint(t, c)
		return
	}
}

// versionOptions returns the options of the version of the name.
func versionOptions(name string) []zkserver.Option {
	if lacks, ok := keepers()[name]; ok {
		opts := []zkserver.Option{zkserver.WithoutOpcodes(lacks...)}
		if strings.HasSuffix(name, silent) {
			opts = append(opts, zkserver.WithoutReplyToUnknown())
		}
		return opts
	}
	return []zkserver.Option{zkserver.WithVersion(name)}
}

// silent is how the name of a Keeper ends that gives no reply to what it does not know.
const silent = "-silent"

// keepers returns what the servers lack that are ClickHouse Keeper's, by the names that ZK_EMBEDDED takes.
func keepers() map[string][]int32 {
	all := make(map[string][]int32)
	for name, lacks := range map[string][]int32{"keeper": zkserver.KeeperLacks(), "keeper-2026": zkserver.Keeper2026Lacks()} {
		all[name], all[name+silent] = lacks, lacks
	}
	return all
}

// lacksOperations reports whether a server of the name lacks operations that [AllOperations] is about.
func lacksOperations(name string) bool {
	return strings.TrimSuffix(name, silent) == "keeper" || strings.HasPrefix(name, "3.5.")
}
