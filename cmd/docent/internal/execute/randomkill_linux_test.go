package execute_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/testing/zktest"
)

// killsVariable sets the number of kills of TestRandomKills.
const killsVariable = "DOCENT_EXEC_KILLS"

// The oracle's script. All that runs in the group checks that no process of another run is alive, by
// a directory per run outside ZooKeeper: each process has its id there as a file. Names are not
// removed, so the check asks whether the process lives, and still belongs to that run: numbers of
// processes are used again.
const oracle = `
trap '' TERM HUP INT
echo $$ >>"$DIR/pids.$FENCE"
( while :; do echo $FENCE >>"$DIR/log"; sleep 0.01; done ) &
echo $! >>"$DIR/pids.$FENCE"
for f in "$DIR"/pids.*; do
	[ "$f" = "$DIR/pids.$FENCE" ] && continue
	while read -r pid; do
		grep -qsz "^DOCENT_FENCE=${f##*.}$" "/proc/$pid/environ" || continue
		state=$(cut -d')' -f2 2>/dev/null <"/proc/$pid/stat" | cut -d' ' -f2)
		case "$state" in ''|Z|X) ;; *) echo "OVERLAP $FENCE meets $f pid $pid state $state" >>"$DIR/overlaps" ;; esac
	done <"$f"
done
touch "$DIR/running.$FENCE"
wait`

// Two execs contend on a real server. The holder is killed at a random point of its life, or stopped,
// or killed after its guard. When the next command begins, no process of an earlier one is alive. The
// log never goes back to an earlier fence, and no orphan is left.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	kills := 5
	if text := os.Getenv(killsVariable); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	addr := zktest.Shared(t).Addr()
	dir := t.TempDir()
	path := fmt.Sprintf("/exec/kills-%d", os.Getpid())
	var contenders sync.WaitGroup
	over := make(chan struct{})
	var mu sync.Mutex
	running := map[int]*program{} // by the contender
	for i := range 2 {
		contenders.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				p := start(t, addr, "--session-timeout", short, path, "--", "sh", "-c",
					`FENCE=$DOCENT_FENCE; DIR=`+dir+oracle)
				mu.Lock()
				running[i] = p
				mu.Unlock()
				_ = p.Wait()
			}
		})
	}
	counts := map[string]int{}
	var last *program
	for n := 0; n < kills; {
		mu.Lock()
		victim := running[rand.IntN(2)]
		mu.Unlock()
		if n%4 != 0 { // most victims hold the lock
			victim = awaitHolder(t, dir, &mu, running)
		}
		if victim == nil || victim == last {
			continue // it is about to end, and its guard has to be left to work
		}
		last = victim
		n++
		<-time.After(time.Duration(rand.IntN(300)) * time.Millisecond)
		how := []string{"kill", "kill", "stop", "guard"}[rand.IntN(4)]
		t.Logf("%v: %s docent %d", time.Now(), how, victim.Process.Pid)
		switch how {
		case "kill":
			counts[how]++
			_ = victim.Process.Kill()
		case "stop": // the guard has to act; then docent goes on
			counts[how]++
			_ = victim.Process.Signal(syscall.SIGSTOP)
			<-time.After(6 * time.Second)
			_ = victim.Process.Signal(syscall.SIGCONT)
			_ = victim.Process.Kill()
		case "guard": // the successor of the guard acts
			counts[how]++
			for _, guard := range guardsOf(victim.Process.Pid) {
				_ = syscall.Kill(guard, syscall.SIGKILL)
			}
			// If both end at once, the kernel kills the leader alone: docent does not promise more.
			for range 500 {
				if strings.Contains(victim.err.String(), "another one is at work") {
					break
				}
				<-time.After(10 * time.Millisecond)
			}
			_ = victim.Process.Kill()
		}
	}
	close(over)
	stopAll(&mu, running, &contenders)
	checkOracle(t, dir, kills)
	t.Logf("%d kills: %v", kills, counts)
}

// awaitHolder returns the program whose command runs under the newest fence.
func awaitHolder(t *testing.T, dir string, mu *sync.Mutex, running map[int]*program) *program {
	t.Helper()
	var found *program
	eventually(t, "a holder's command runs", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range running {
			for _, e := range childrenOf(p.Process.Pid) {
				if fence := fenceOf(e); fence != "" {
					if _, err := os.Stat(filepath.Join(dir, "running."+fence)); err == nil {
						found = p
						return true
					}
				}
			}
		}
		return false
	})
	return found
}

// fenceOf returns DOCENT_FENCE of a process.
func fenceOf(pid int) string {
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for variable := range strings.SplitSeq(string(env), "\x00") {
		if fence, ok := strings.CutPrefix(variable, "DOCENT_FENCE="); ok {
			return fence
		}
	}
	return ""
}

func childrenOf(pid int) []int {
	var list []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		for child := range strings.FieldsSeq(contents(task)) {
			number, _ := strconv.Atoi(child)
			list = append(list, number)
		}
	}
	return list
}

func guardsOf(pid int) []int {
	var list []int
	for _, child := range childrenOf(pid) {
		if strings.Contains(contents(fmt.Sprintf("/proc/%d/cmdline", child)), "__guard") {
			list = append(list, child)
		}
	}
	return list
}

// stopAll kills what still runs until the contenders have ended.
func stopAll(mu *sync.Mutex, running map[int]*program, contenders *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() { contenders.Wait(); close(ended) }()
	for {
		mu.Lock()
		for _, p := range running {
			_ = p.Process.Kill()
		}
		mu.Unlock()
		select {
		case <-ended:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func checkOracle(t *testing.T, dir string, kills int) {
	t.Helper()
	if overlaps := contents(filepath.Join(dir, "overlaps")); overlaps != "" {
		t.Errorf("commands ran together:\n%s", overlaps)
	}
	var last int64
	runs := 0
	for line := range strings.Lines(contents(filepath.Join(dir, "log"))) {
		fence, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil || fence < last {
			t.Fatalf("the log goes back from fence %d to %q", last, line)
		}
		if fence > last {
			runs++
		}
		last = fence
	}
	if runs < kills/4 {
		t.Errorf("%d runs in %d kills: the test has come to miss them", runs, kills)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "pids.*"))
	for _, file := range files {
		for pid := range strings.FieldsSeq(contents(file)) {
			number, _ := strconv.Atoi(pid)
			eventually(t, "process "+pid+" ends", func() bool {
				return !alive(pid) || fenceOf(number) != strings.TrimPrefix(filepath.Ext(file), ".")
			})
		}
	}
}
