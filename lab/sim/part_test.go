package sim_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/must"
)

// A run is spread over processes of one processor each. In such a process goroutines take turns in
// an order that hardly varies, and its leftover goroutines can be counted. A bug that ends the
// process ends only its part.

// partEnv tells a process which part it is, as JSON.
const partEnv = "SIM_PART"

// A part is the work of one process.
type part struct {
	First, Step uint64 // the seeds
	Schedules   uint64 // at the least
	Virtual     time.Duration
	Repeat      bool // one seed again and again
}

// The reports of a part on its standard output, each on a line of its own.
const (
	saysSeed = "sim:seed "
	saysDone = "sim:done "
)

const (
	schedulesKey = "schedules"
	virtualKey   = "virtual milliseconds"
	tracesKey    = "different traces"
)

// shares divides schedules among as many processes as there are processors.
func shares(first, schedules uint64, virtual time.Duration) []part {
	parts := make([]part, runtime.NumCPU())
	n := uint64(len(parts))
	for i := range n {
		parts[i] = part{First: first + i, Step: n, Schedules: (schedules + n - 1 - i) / n, Virtual: virtual / time.Duration(n)}
	}
	return parts
}

// runParts runs a process for each part and adds up what they met.
func runParts(t *testing.T, parts []part) map[string]int {
	t.Helper()
	total := map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, p := range parts {
		all.Go(func() {
			counts := runPart(t, p)
			mu.Lock()
			defer mu.Unlock()
			addCounts(total, counts)
		})
	}
	all.Wait()
	return total
}

// replay runs one seed's schedule again and again, until it fails.
func replay(t *testing.T, seed, times uint64) {
	t.Helper()
	counts := runPart(t, part{First: seed, Schedules: times, Repeat: true})
	t.Logf("seed %d: %d runs, %d different traces", seed, counts[schedulesKey], counts[tracesKey])
}

// runPart runs a process and returns what it met.
func runPart(t *testing.T, p part) map[string]int {
	t.Helper()
	coded := made(json.Marshal(p))
	cmd := exec.Command(os.Args[0], "-test.run=^TestPart$", "-test.timeout=0") //nolint:noctx // it ends when its part is done, or with go test
	cmd.Env = append(os.Environ(), partEnv+"="+string(coded), "GOMAXPROCS=1", "GOGC=400", "GODEBUG=asyncpreemptoff=1")
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	counts, seed, said := listen(out.String())
	if err != nil {
		t.Errorf("seed %s (SIM_SEED=%s make sim replays it): %v\n%s\n%s", seed, seed, err, said, complaints.String())
	}
	return counts
}

// listen divides a part's output into the counts, the seed and the rest.
func listen(out string) (counts map[string]int, seed, said string) {
	var rest strings.Builder
	for line := range strings.Lines(out) {
		if s, ok := strings.CutPrefix(line, saysSeed); ok {
			seed = strings.TrimSpace(s)
		} else if s, ok := strings.CutPrefix(line, saysDone); ok {
			_ = json.Unmarshal([]byte(s), &counts) // nothing is counted then, which shows
		} else {
			rest.WriteString(line)
		}
	}
	return counts, seed, rest.String()
}

// TestPart is the work of a process that runPart started.
func TestPart(t *testing.T) {
	coded := os.Getenv(partEnv)
	if coded == "" {
		t.Skip("it is run by TestSimulation, as a process of its own")
	}
	var p part
	must.OK(t, json.Unmarshal([]byte(coded), &p))
	total := map[string]int{}
	liveAll(t, p, total)
	done := must.Get(json.Marshal(total))(t)
	fmt.Printf("%s%s\n", saysDone, done)
}

// liveAll runs the schedules of a part, up to one that violates something.
func liveAll(t *testing.T, p part, total map[string]int) {
	t.Helper()
	traces := map[uint64]bool{}
	for seed := p.First; total[schedulesKey] < int(p.Schedules) || total[virtualKey] < int(p.Virtual/time.Millisecond); seed += p.Step {
		fmt.Printf("%s%d\n", saysSeed, seed)
		env := simulate(t, newEnvironment(newPlan(seed), sound()))
		addCounts(total, env.counts)
		total[schedulesKey]++
		if p.Repeat {
			traces[hashOf(env.sortedTrace())] = true
			total[tracesKey] = len(traces)
		}
		save(t, fmt.Sprintf("%d-%d.trace", seed, total[schedulesKey]), env)
		if err := env.err(); err != nil {
			t.Fatalf("%v\n\n%s", err, tail(env.trace()))
		}
	}
}

// save writes a trace to the directory SIM_TRACES, if there is one.
func save(t *testing.T, name string, env *environment) {
	t.Helper()
	dir := os.Getenv("SIM_TRACES")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(env.trace()), 0o600); err != nil {
		t.Error(err)
	}
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text)) // never fails
	return h.Sum64()
}

// tail returns the end of a trace, up to what came shortly after the first violation.
func tail(trace string) string {
	const before, after = 200, 60
	lines := strings.Split(trace, "\n")
	for i, line := range lines {
		if strings.Contains(line, "VIOLATION") {
			return strings.Join(lines[max(0, i-before):min(len(lines), i+after)], "\n")
		}
	}
	return strings.Join(lines[max(0, len(lines)-before):], "\n")
}
