package execute_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/docent-go/docent/cmd/docent/internal/apptest"
	"github.com/docent-go/docent/internal/must"
)

// innerScript is what the innermost of the oracle's docent execs runs. Each process of a run has a file open, with a
// lock of the system: the run's mark. The script checks that no mark of another run has a process, whatever its
// namespace and its threads. It counts the signals that it gets, and ends of none.
const innerScript = `
for f in "$DIR"/mark.*; do
	[ "$f" = "$DIR/mark.$FENCE" ] && continue
	flock -n "$f" true && continue
	echo "OVERLAP $FENCE meets $f: $(ls -l /proc/[0-9]*/fd/9 2>/dev/null | grep -F "$f")" >>"$DIR/overlaps"
done
trap 'echo INT >>"$DIR/got.$FENCE"' INT
trap 'echo TERM >>"$DIR/got.$FENCE"' TERM
trap 'echo HUP >>"$DIR/got.$FENCE"' HUP
sh "$DIR/work" &
%s
touch "$DIR/running.$FENCE"
while :; do wait; sleep 0.02; done`

// workScript is what CMD starts: it writes the fence, again and again.
const workScript = `
trap '' TERM HUP INT
while :; do echo $FENCE >>"$DIR/log"; sleep 0.03; done`

// shapes are the ways in which CMD starts a further process. Each of them inherits the mark.
func shapes() []string {
	list := []string{
		"",
		`timeout 300 sh "$DIR/work" &`,       // a process group of its own
		`bash -mc 'sh "$DIR/work" & wait' &`, // by job control
		`setsid -f sh "$DIR/work"`,           // a session of its own, and no parent
		`(setsid timeout 300 setsid sh "$DIR/work" & )`,                   // several
		`sh "$DIR/work" & kill -STOP $!`,                                  // stopped
		`TRACED=1 "$TRACER" & `,                                           // stopped by a tracer
		`nohup nice sh -c 'while :; do sh -c "sleep 0.02; exit"; done' &`, // many short ones
		`(setsid ` + prey("leader has ended") + ` & )`,                    // threads without a main one
		`setsid ` + prey("thread execs") + ` &`,
		prey("links") + ` &`, // a chain of processes that end
	}
	if namespaces() {
		list = append(list,
			`(setsid `+unshare()+` -p -f sh "$DIR/work" & )`,
			`setsid unshare -U -r sh "$DIR/work" &`,
			`setsid `+unshare()+` -m sh "$DIR/work" &`,
		)
	}
	return list
}

// surroundings are the commands that docent runs below.
func surroundings() []string {
	list := []string{"", "", "setsid -w"}
	if namespaces() {
		list = append(list, unshare()+" -p -f --mount-proc", "unshare -U -r", unshare()+" -m", unshare()+" -p -f --mount-proc setsid -w")
	}
	return list
}

// namespaces reports whether this process may make them.
func namespaces() bool {
	return exec.Command("sh", "-c", unshare()+" -p -f -m true && unshare -U -r true").Run() == nil
}

// A setting is how a contender runs its next docent exec.
type setting struct {
	around string // a command that docent runs below
	shape  string // how CMD starts a further process
	depth  int    // of nested execs
	cgroup bool
}

// An oracle has two contenders, each of which runs one exec after the other. It checks outside
// ZooKeeper that their commands don't run together.
type oracle struct {
	dir        string
	setting    func() setting // of the next run
	over       chan struct{}  // closed by end
	contenders sync.WaitGroup

	mu      sync.Mutex  // guards running
	running [2]*program // by the contender
}

// contend starts two contenders for the path, each with its address. next returns how they run docent.
func contend(t *testing.T, path string, addrs [2]string, next func() setting) *oracle {
	t.Helper()
	o := &oracle{dir: t.TempDir(), over: make(chan struct{}), setting: next}
	must.OK(t, os.WriteFile(filepath.Join(o.dir, "work"), []byte(workScript), 0o600))
	for i, addr := range addrs {
		o.contenders.Go(func() { // ends when over is closed
			for {
				select {
				case <-o.over:
					return
				default:
				}
				p := o.start(t, addr, path, o.setting())
				o.mu.Lock()
				o.running[i] = p
				o.mu.Unlock()
				_ = p.Wait()
			}
		})
	}
	return o
}

// start starts a docent exec as the setting says. The outermost command sets the mark, which all inherit.
func (o *oracle) start(t *testing.T, addr, path string, s setting) *program {
	t.Helper()
	flags := fmt.Sprintf("exec --connect %s --session-timeout %s --no-cgroup=%v", addr, short, !s.cgroup)
	script := fmt.Sprintf(innerScript, s.shape)
	for level := s.depth; level > 1; level-- {
		script = fmt.Sprintf("trap : INT TERM HUP\n%s %s \"%s-$FENCE-%d\" -- sh -c %s\nwhile :; do sleep 0.02; done",
			quoted(os.Args[0]), flags, path, level, quoted(script))
	}
	set := fmt.Sprintf("export FENCE=$DOCENT_FENCE DIR=%s TRACER=%s; exec 9>\"$DIR/mark.$FENCE\"; flock -s 9\n", quoted(o.dir), quoted(os.Args[0]))
	args := strings.Fields(s.around + " " + os.Args[0] + " " + flags)
	args = append(args, path, "--", "sh", "-c", set+script)
	cmd := apptest.Program(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return launch(t, cmd)
}

// program returns the contender's present program, or nil before its first one.
func (o *oracle) program(contender int) *program {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.running[contender]
}

// holder returns the contender whose command runs, once it is another program than last.
func (o *oracle) holder(t *testing.T, last *program) (contender int, p *program) {
	t.Helper()
	eventually(t, "the command of another holder runs", func() bool {
		for contender = range o.running {
			if p = o.program(contender); p != nil && p != last && o.runs(p) {
				return true
			}
		}
		return false
	})
	return contender, p
}

// fence returns the fence of the program's command, "" if it does not run.
func (o *oracle) fence(p *program) string {
	for _, child := range childrenOf(workerOf(p)) {
		if fence := fenceOf(child); fence != "" && alive(strconv.Itoa(child)) {
			return fence
		}
	}
	return ""
}

// runs reports whether the program's innermost command has passed the oracle's check, and the outermost one runs.
func (o *oracle) runs(p *program) bool {
	fence := o.fence(p)
	_, err := os.Stat(filepath.Join(o.dir, "running."+fence))
	return fence != "" && err == nil
}

// got returns how often the innermost command of the fence has got the signal.
func (o *oracle) got(fence, signal string) int {
	return strings.Count(contents(filepath.Join(o.dir, "got."+fence)), signal+"\n")
}

// end kills all programs, and checks what the oracle has seen of at least so many runs.
func (o *oracle) end(t *testing.T, runs int) {
	t.Helper()
	close(o.over)
	ended := make(chan struct{})
	go func() { o.contenders.Wait(); close(ended) }()
	for stopped := false; !stopped; {
		for contender := range o.running {
			if p := o.program(contender); p != nil {
				kill(p)
			}
		}
		select {
		case <-ended:
			stopped = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	o.check(t, runs)
}

func (o *oracle) check(t *testing.T, runs int) {
	t.Helper()
	if overlaps := contents(filepath.Join(o.dir, "overlaps")); overlaps != "" {
		t.Errorf("commands ran together:\n%s", overlaps)
	}
	var last int64
	seen := 0
	for line := range strings.Lines(contents(filepath.Join(o.dir, "log"))) {
		fence, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil || fence < last {
			t.Fatalf("the log goes back from fence %d to %q", last, line)
		}
		if fence > last {
			seen++
		}
		last = fence
	}
	if seen < runs {
		t.Errorf("%d commands ran, want at least %d", seen, runs)
	}
	files, _ := filepath.Glob(filepath.Join(o.dir, "mark.*"))
	for _, file := range files {
		eventually(t, "the processes of "+filepath.Base(file)+" end", func() bool { return !mark(file).lives(t) })
	}
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

// levelsOf returns the guards of nested docent execs, the outermost first, each with its child: 0 if that has ended.
func levelsOf(p *program) (guards, children []int) {
	for below := []int{p.Process.Pid}; len(below) > 0; below = below[1:] {
		found := childrenOf(below[0])
		below = append(below, found...)
		if strings.TrimSpace(contents(fmt.Sprintf("/proc/%d/comm", below[0]))) != "docent exec" {
			continue
		}
		child := 0
		if i := slices.IndexFunc(found, isExec); i >= 0 {
			child = found[i]
		}
		guards, children = append(guards, below[0]), append(children, child)
	}
	return guards, children
}

// kill kills the program's outermost docent. If that has ended or has just begun, it kills what docent runs below.
func kill(p *program) {
	_ = p.Process.Signal(syscall.SIGCONT) // what docent runs below may be stopped
	if guard := guardOf(p); guard != 0 {
		_ = syscall.Kill(guard, syscall.SIGKILL)
		return
	}
	for _, child := range childrenOf(p.Process.Pid) {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	_ = p.Process.Kill()
}

// isExec reports whether the process is the child of a docent exec's guard.
func isExec(pid int) bool {
	return strings.Contains(contents(fmt.Sprintf("/proc/%d/cmdline", pid)), "exec\x00--connect")
}

// guardOf returns the process id of the outermost docent of the program, 0 if it has ended.
func guardOf(p *program) int {
	if guards, _ := levelsOf(p); len(guards) > 0 {
		return guards[0]
	}
	return 0
}

// workerOf returns the process id of the docent that runs the command, the guard's child; 0 if it has
// ended, or has not been started.
func workerOf(p *program) int {
	if _, children := levelsOf(p); len(children) > 0 {
		return children[0]
	}
	return 0
}

// lives reports whether a process that has the mark lives.
func (m mark) lives(t testing.TB) bool {
	t.Helper()
	file := must.Get(os.OpenFile(string(m), os.O_RDWR|os.O_CREATE, 0o600))(t)
	defer file.Close()
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}

func namesOf[T any](table map[string]T) []string {
	return slices.Sorted(maps.Keys(table))
}
