package execute_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zktest"
)

// contentionVariable sets the number of schedules of TestContention.
const contentionVariable = "DOCENT_EXEC_CONTENTION"

// parallelEnvironments is how many paths are contended for at once, with many schedules.
const parallelEnvironments = 4

// faults are what may happen to a holder.
func faults() map[string]func(t *testing.T, o *oracle, v victim) {
	all := map[string]func(t *testing.T, o *oracle, v victim){
		"nothing":             func(*testing.T, *oracle, victim) {},
		"INT":                 func(t *testing.T, o *oracle, v victim) { v.count(t, o, syscall.SIGINT) },
		"TERM":                func(t *testing.T, o *oracle, v victim) { v.count(t, o, syscall.SIGTERM) },
		"HUP":                 func(t *testing.T, o *oracle, v victim) { v.count(t, o, syscall.SIGHUP) },
		"INT twice":           interruptTwice,
		"kill the guard":      func(_ *testing.T, _ *oracle, v victim) { v.signal(v.guard, syscall.SIGKILL) },
		"kill docent":         func(t *testing.T, _ *oracle, v victim) { v.killDocent(t, syscall.SIGKILL) },
		"kill docent's group": func(_ *testing.T, _ *oracle, v victim) { v.signal(-v.group, syscall.SIGKILL) },
		"stop docent's group": func(_ *testing.T, _ *oracle, v victim) { v.signal(-v.group, syscall.SIGSTOP) },
		"stop the guard":      func(_ *testing.T, _ *oracle, v victim) { v.signal(v.guard, syscall.SIGSTOP) },
		"stop docent":         stopDocent,
		"stop docent, TERM":   stopDocentAndAsk,
		"stop docent, kill the guard": func(_ *testing.T, _ *oracle, v victim) {
			v.signal(v.docent, syscall.SIGSTOP)
			v.signal(v.guard, syscall.SIGKILL)
		},
		"stop the command": func(_ *testing.T, _ *oracle, v victim) { v.signal(v.command, syscall.SIGSTOP) },
		"kill the command": func(_ *testing.T, _ *oracle, v victim) { v.signal(v.command, syscall.SIGKILL) },
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
	for _, sig := range []syscall.Signal{syscall.SIGABRT, syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGSYS} {
		all["crash docent by "+unix.SignalName(sig)] = func(t *testing.T, _ *oracle, v victim) { v.killDocent(t, sig) }
		all["crash the guard by "+unix.SignalName(sig)] = func(_ *testing.T, _ *oracle, v victim) { v.signal(v.guard, sig) }
	}
	return all
}

// A victim is the holder that a fault happens to: one of its nested docent execs.
type victim struct {
	program       *program
	fence         string
	group         int // the outermost docent's process group
	guard, docent int
	command       int // what the victim's docent runs
	proxy         *zkproxy.Proxy
}

// victimOf returns the program at one of its levels. A level may have ended.
func victimOf(o *oracle, p *program, level int, proxy *zkproxy.Proxy) victim {
	v := victim{program: p, fence: o.fence(p), proxy: proxy}
	guards, children := levelsOf(p)
	if len(guards) == 0 {
		return v
	}
	if group, err := unix.Getpgid(guards[0]); err == nil {
		v.group = group
	}
	level = min(level, len(guards)-1)
	v.guard, v.docent = guards[level], children[level]
	if v.docent != 0 {
		if list := childrenOf(v.docent); len(list) > 0 {
			v.command = list[0]
		}
	}
	return v
}

// signal sends the signal to a process that may have ended.
func (v victim) signal(pid int, sig syscall.Signal) {
	if pid != 0 {
		_ = syscall.Kill(pid, sig)
	}
}

// count sends the signal to the outermost docent and checks that the innermost command gets it once.
func (v victim) count(t *testing.T, o *oracle, sig syscall.Signal) {
	t.Helper()
	name := strings.TrimPrefix(unix.SignalName(sig), "SIG")
	v.signal(guardOf(v.program), sig)
	eventually(t, name+" reaches the innermost command", func() bool { return o.got(v.fence, name) > 0 || o.fence(v.program) != v.fence })
	<-time.After(200 * time.Millisecond) // for a second one
	if n := o.got(v.fence, name); n > 1 {
		t.Errorf("the innermost command of fence %s got %s %d times", v.fence, name, n)
	}
}

// interruptTwice sends INT twice. The second one becomes KILL.
func interruptTwice(t *testing.T, o *oracle, v victim) {
	t.Helper()
	v.count(t, o, syscall.SIGINT)
	v.signal(guardOf(v.program), syscall.SIGINT)
	eventually(t, "the command ends at the second INT", func() bool { return o.fence(v.program) != v.fence })
	if n := o.got(v.fence, "INT"); n > 1 {
		t.Errorf("the innermost command of fence %s got INT %d times", v.fence, n)
	}
}

// stopDocentAndAsk sends TERM to the guard of a docent that is stopped: docent is continued, and passes it on.
func stopDocentAndAsk(t *testing.T, o *oracle, v victim) {
	t.Helper()
	v.signal(v.docent, syscall.SIGSTOP)
	v.count(t, o, syscall.SIGTERM)
}

// killDocent waits until the guard has done its work. If both are killed at once, the kernel kills CMD alone:
// docent does not promise more.
func (v victim) killDocent(t *testing.T, sig syscall.Signal) {
	t.Helper()
	v.signal(v.docent, sig)
	eventually(t, "the guard ends, too", func() bool { return v.guard == 0 || !alive(strconv.Itoa(v.guard)) })
}

// stopDocent stops docent until the guard has killed the command.
func stopDocent(t *testing.T, o *oracle, v victim) {
	t.Helper()
	v.signal(v.docent, syscall.SIGSTOP)
	eventually(t, "the guard kills the command of a docent that is stopped", func() bool {
		return v.command == 0 || !alive(strconv.Itoa(v.command))
	})
}

// Two execs contend on a real server, with programs of all shapes. A fault happens to the holder at a random
// point of its life. When the next command begins, no process of an earlier one is alive. The log never
// goes back to an earlier fence, and no orphan is left.
func TestContention(t *testing.T) {
	t.Parallel()
	schedules := countOf(t, contentionVariable, 10)
	server := zktest.Shared(t).Addr()
	environments := 1
	if schedules > 100 {
		environments = parallelEnvironments
	}
	var playing sync.WaitGroup
	for environment := range environments {
		seed := rand.Uint64()
		t.Logf("environment %d: seed %d", environment, seed)
		playing.Go(func() { contendBySchedules(t, server, environment, schedules/environments, seed) })
	}
	playing.Wait()
}

// contendBySchedules plays the schedules of one path.
func contendBySchedules(t *testing.T, server string, environment, schedules int, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	next := settings(rand.New(rand.NewPCG(seed, 1)), canMakeCgroup(t))
	var proxies [2]*zkproxy.Proxy
	var addrs [2]string
	for i := range proxies {
		proxies[i] = zkproxy.Run(t, server)
		addrs[i] = proxies[i].Addr()
	}
	o := contend(t, fmt.Sprintf("/exec/environment-%d-%d", os.Getpid(), environment), addrs, next)
	names := namesOf(faults())
	var last *program
	for n := range schedules {
		contender, holder := o.holder(t, last)
		last = holder
		how := names[(n+int(seed%uint64(len(names))))%len(names)] // all of them, also with few schedules
		<-time.After(time.Duration(random.IntN(300)) * time.Millisecond)
		t.Logf("environment %d, schedule %d: %s", environment, n, how)
		faults()[how](t, o, victimOf(o, holder, random.IntN(3), proxies[contender]))
		<-time.After(time.Duration(random.IntN(100)) * time.Millisecond)
		kill(holder) // the next one, if this one runs on
	}
	o.end(t, (schedules+1)/2)
}

// settings returns how the contenders run docent, by chance.
func settings(random *rand.Rand, cgroup bool) func() setting {
	shapes, around := shapes(), surroundings()
	var mu sync.Mutex // guards random
	return func() setting {
		mu.Lock()
		defer mu.Unlock()
		return setting{
			around: around[random.IntN(len(around))],
			shape:  shapes[random.IntN(len(shapes))],
			depth:  max(1, random.IntN(6)-2), // one level in four of six, two or three else
			cgroup: cgroup && random.IntN(2) == 0,
		}
	}
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
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	_, _ = cmd.Process.Wait() // until docent kills both
}
