package execute_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/testing/zktest"
)

// killsVariable sets the number of kills of TestRandomKills.
const killsVariable = "DOCENT_EXEC_KILLS"

// Two execs contend on a real server. The holder is killed at a random point of its life, or stopped,
// or only the process below its guard is killed. When the next command begins, no process of an earlier one is alive. The
// log never goes back to an earlier fence, and no orphan is left.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	kills := countOf(t, killsVariable, 3)
	addr := zktest.Shared(t).Addr()
	o := contend(t, fmt.Sprintf("/exec/kills-%d", os.Getpid()), [2]string{addr, addr})
	hows := []string{"kill", "stop", "docent"}
	var last *program
	for n := range kills {
		_, victim := o.holder(t, last)
		if waiter := o.program(rand.IntN(2)); n%4 == 3 && waiter != nil && waiter != last {
			victim = waiter // or the holder
		}
		last = victim
		how := hows[n%3]
		if n >= len(hows) { // with many kills
			how = hows[rand.IntN(len(hows))]
		}
		<-time.After(time.Duration(rand.IntN(300)) * time.Millisecond)
		t.Logf("%v: %s docent %d", time.Now(), how, victim.Process.Pid)
		o.kill(t, victim, how)
	}
	o.end(t, (kills+1)/2)
}

// kill ends the victim.
func (o *oracle) kill(t *testing.T, victim *program, how string) {
	t.Helper()
	switch how {
	case "stop": // the guard has to act; then docent goes on
		worker := workerOf(victim)
		if worker == 0 {
			break
		}
		_ = syscall.Kill(worker, syscall.SIGSTOP)
		if o.runs(victim) {
			eventually(t, "the guard kills the command of a docent that is stopped", func() bool { return !o.runs(victim) })
		}
		_ = syscall.Kill(worker, syscall.SIGCONT)
	case "docent":
		if worker := workerOf(victim); worker != 0 {
			_ = syscall.Kill(worker, syscall.SIGKILL)
			// If both end at once, the kernel kills the leader alone: docent does not promise more.
			eventually(t, "the guard ends, too", func() bool { return !alive(strconv.Itoa(victim.Process.Pid)) })
		}
	}
	_ = victim.Process.Kill() // the guard: then docent acts
}

// countOf returns the number in an environment variable, or the default.
func countOf(t *testing.T, variable string, count int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return count
	}
	count, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return count
}
