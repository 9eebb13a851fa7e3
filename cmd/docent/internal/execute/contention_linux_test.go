package execute_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// contentionVariable sets the number of schedules of TestContention.
const contentionVariable = "DOCENT_EXEC_CONTENTION"

// parallelEnvironments is how many paths are contended for at once, with many schedules.
const parallelEnvironments = 4

// faults are what may happen to a holder.
func faults() map[string]func(t *testing.T, o *oracle, v victim) {
	return map[string]func(t *testing.T, o *oracle, v victim){
		"nothing":        func(*testing.T, *oracle, victim) {},
		"TERM":           func(_ *testing.T, _ *oracle, v victim) { v.signal(v.guard, syscall.SIGTERM) },
		"kill the guard": func(_ *testing.T, _ *oracle, v victim) { v.signal(v.guard, syscall.SIGKILL) },
		"kill docent":    killDocent,
		"stop the guard": func(_ *testing.T, _ *oracle, v victim) { v.signal(v.guard, syscall.SIGSTOP) },
		"stop docent":    stopDocent,
		"stop docent, kill the guard": func(_ *testing.T, _ *oracle, v victim) {
			v.signal(v.docent, syscall.SIGSTOP)
			v.signal(v.guard, syscall.SIGKILL)
		},
		"silence": func(t *testing.T, o *oracle, v victim) {
			v.proxy.Blackhole(zkproxy.ToServer)
			v.proxy.Blackhole(zkproxy.ToClient)
			o.holder(t, v.program)
			v.proxy.Heal()
		},
		"cut": func(t *testing.T, o *oracle, v victim) {
			v.proxy.Refuse()
			v.proxy.Cut()
			o.holder(t, v.program)
			v.proxy.Heal()
		},
		"silence, and stop docent": func(t *testing.T, o *oracle, v victim) {
			v.proxy.Blackhole(zkproxy.ToServer)
			stopDocent(t, o, v)
			v.proxy.Heal()
		},
	}
}

// A victim is the holder that a fault happens to.
type victim struct {
	program       *program
	guard, docent int
	proxy         *zkproxy.Proxy
}

// signal sends the signal to a process that may have ended.
func (v victim) signal(pid int, sig syscall.Signal) {
	if pid != 0 {
		_ = syscall.Kill(pid, sig)
	}
}

// killDocent waits until the guard has done its work. If both are killed at once, the kernel kills CMD alone:
// docent does not promise more.
func killDocent(t *testing.T, _ *oracle, v victim) {
	t.Helper()
	v.signal(v.docent, syscall.SIGKILL)
	eventually(t, "the guard ends, too", func() bool { return !alive(strconv.Itoa(v.guard)) })
}

// stopDocent stops docent until the guard has killed the command.
func stopDocent(t *testing.T, o *oracle, v victim) {
	t.Helper()
	v.signal(v.docent, syscall.SIGSTOP)
	eventually(t, "the guard kills the command of a docent that is stopped", func() bool { return !o.runs(v.program) })
	v.signal(v.docent, syscall.SIGCONT)
}

// Two execs contend on a real server, with programs of all shapes. A fault happens to the holder at a random
// point of its life. When the next command begins, no process of an earlier one is alive. The log never
// goes back to an earlier fence, and no orphan is left. With -v the test ends with the number of
// schedules, of runs and of overlaps, and with what docent itself announced as not covered.
func TestContention(t *testing.T) {
	t.Parallel()
	schedules := countOf(t, contentionVariable, 10)
	server := zktest.Shared(t).Addr()
	environments := 1
	if schedules > 100 {
		environments = parallelEnvironments
	}
	var playing sync.WaitGroup
	sums := make([]sum, environments)
	for environment := range environments {
		seed := rand.Uint64()
		t.Logf("environment %d: seed %d", environment, seed)
		playing.Go(func() { sums[environment] = contendBySchedules(t, server, environment, schedules/environments, seed) })
	}
	playing.Wait()
	runs, overlaps, announced := 0, 0, map[string]int{}
	for _, s := range sums {
		runs, overlaps = runs+s.runs, overlaps+len(s.overlaps)
		for _, line := range s.announced {
			for _, part := range announcements() {
				if strings.Contains(line, part) {
					announced[part]++
				}
			}
		}
	}
	t.Logf("%d schedules, %d runs, %d overlaps; announced as not covered: %v", schedules/environments*environments, runs, overlaps, announced)
}

// contendBySchedules plays the schedules of one path.
func contendBySchedules(t *testing.T, server string, environment, schedules int, seed uint64) sum {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex // guards shaper
	shaper := rand.New(rand.NewPCG(seed, 1))
	shape := func() string {
		mu.Lock()
		defer mu.Unlock()
		return shapes()[shaper.IntN(len(shapes()))]
	}
	var proxies [2]*zkproxy.Proxy
	var addrs [2]string
	for i := range proxies {
		proxies[i] = zkproxy.Run(t, server)
		addrs[i] = proxies[i].Addr()
	}
	o := contend(t, fmt.Sprintf("/exec/environment-%d-%d", os.Getpid(), environment), addrs, shape)
	names := namesOf(faults())
	var last *program
	for n := range schedules {
		contender, holder := o.holder(t, last)
		last = holder
		how := names[(n+int(seed%uint64(len(names))))%len(names)] // all of them, also with few schedules
		<-time.After(time.Duration(random.IntN(300)) * time.Millisecond)
		t.Logf("environment %d, schedule %d: %s", environment, n, how)
		faults()[how](t, o, victim{holder, holder.Process.Pid, workerOf(holder), proxies[contender]})
		<-time.After(time.Duration(random.IntN(100)) * time.Millisecond)
		_ = holder.Process.Kill() // the next one, if this one runs on
	}
	return o.end(t, (schedules+1)/2)
}

// tracedVariable makes the test binary a tracer: it starts a process, which stops, and waits.
const tracedVariable = "TRACED"

// trace is the process of tracedVariable.
func trace() {
	cmd := exec.Command("sleep", "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	file, err := os.OpenFile(os.Getenv("DIR")+"/pids."+os.Getenv("FENCE"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = fmt.Fprintf(file, "%d\n%d\n", os.Getpid(), cmd.Process.Pid)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	_, _ = cmd.Process.Wait() // until docent kills both
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

func namesOf[T any](table map[string]T) []string {
	return slices.Sorted(maps.Keys(table))
}
