package execute_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// oracleScript is the oracle's. All that CMD starts checks that no process of another run is alive, by a directory
// outside ZooKeeper with a file per run: each process has its id there. Ids are not removed, so the check
// asks whether the process lives, and still belongs to that run: numbers of processes are used again.
const oracleScript = `
trap '' TERM HUP INT
echo $$ >>"$DIR/pids.$FENCE"
sh "$DIR/work" &
%s
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

// workScript is what CMD starts: it writes the fence, again and again.
const workScript = `
trap '' TERM HUP INT
echo $$ >>"$DIR/pids.$FENCE"
while :; do echo $FENCE >>"$DIR/log"; sleep 0.03; done`

// shapes are the ways in which CMD starts a further process.
func shapes() []string {
	return []string{
		"",
		`timeout 300 sh "$DIR/work" &`,       // a process group of its own
		`bash -mc 'sh "$DIR/work" & wait' &`, // by job control
		`setsid -f sh "$DIR/work"`,           // a session of its own, and no parent
		`(setsid timeout 300 setsid sh "$DIR/work" & )`, // several
		`sh "$DIR/work" & kill -STOP $!`,                // stopped
		`TRACED=1 "$TRACER" & `,                         // stopped by a tracer
		`nohup nice sh -c 'while :; do sh -c "sleep 0.02; exit"; done' & echo $! >>"$DIR/pids.$FENCE"`, // many short ones
	}
}

// An oracle has two contenders, each of which runs one exec after the other. It checks outside
// ZooKeeper that their commands don't run together.
type oracle struct {
	dir        string
	shape      func() string // of the next run
	over       chan struct{} // closed by end
	contenders sync.WaitGroup

	mu      sync.Mutex  // guards following
	running [2]*program // by the contender
	all     []*program
}

// contend starts two contenders for the path, each with its address. shape returns how CMD starts a further
// process.
func contend(t *testing.T, path string, addrs [2]string, shape func() string) *oracle {
	t.Helper()
	o := &oracle{dir: t.TempDir(), over: make(chan struct{}), shape: shape}
	if err := os.WriteFile(filepath.Join(o.dir, "work"), []byte(workScript), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, addr := range addrs {
		o.contenders.Go(func() { // ends when over is closed
			for {
				select {
				case <-o.over:
					return
				default:
				}
				p := start(t, addr, "--session-timeout", short, path, "--", "sh", "-c",
					"export FENCE=$DOCENT_FENCE DIR="+quoted(o.dir)+" TRACER="+quoted(testBinary())+fmt.Sprintf(oracleScript, o.shape()))
				o.mu.Lock()
				o.running[i] = p
				o.all = append(o.all, p)
				o.mu.Unlock()
				_ = p.Wait()
			}
		})
	}
	return o
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

// runs reports whether the program's command has passed the oracle's check, and runs.
func (o *oracle) runs(p *program) bool {
	for _, child := range childrenOf(workerOf(p)) {
		fence := fenceOf(child)
		if _, err := os.Stat(filepath.Join(o.dir, "running."+fence)); fence != "" && err == nil && alive(strconv.Itoa(child)) {
			return true
		}
	}
	return false
}

// A sum is what an oracle has seen.
type sum struct {
	runs      int      // commands that wrote to the log
	overlaps  []string // as the script wrote them
	announced []string // what docent itself said that it can't do
}

// announcements are parts of what docent says if it does not cover a case: docs/command.md has the cases.
func announcements() []string {
	return []string{
		"no guard:", "runs as another user", "docent may not send", "runs on, and is not under the lock",
		"does not end after KILL", "it may run beside the next holder's command",
	}
}

// announced returns the lines in which docent announced a case that it does not cover.
func (o *oracle) announced() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var lines []string
	for _, p := range o.all {
		for line := range strings.Lines(p.err.String()) {
			if slices.ContainsFunc(announcements(), func(part string) bool { return strings.Contains(line, part) }) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}

// end kills all programs, checks what the oracle has seen of at least so many runs, and returns it.
func (o *oracle) end(t *testing.T, runs int) sum {
	t.Helper()
	close(o.over)
	ended := make(chan struct{})
	go func() { o.contenders.Wait(); close(ended) }()
	for stopped := false; !stopped; {
		for contender := range o.running {
			if p := o.program(contender); p != nil {
				_ = p.Process.Kill()
			}
		}
		select {
		case <-ended:
			stopped = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	return o.check(t, runs)
}

func (o *oracle) check(t *testing.T, runs int) sum {
	t.Helper()
	overlaps := contents(filepath.Join(o.dir, "overlaps"))
	if overlaps != "" {
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
	files, _ := filepath.Glob(filepath.Join(o.dir, "pids.*"))
	for _, file := range files {
		fence := strings.TrimPrefix(filepath.Ext(file), ".")
		eventually(t, "the processes of fence "+fence+" end", func() bool { return len(o.left(fence)) == 0 })
	}
	return sum{seen, slices.Collect(strings.Lines(overlaps)), o.announced()}
}

// left returns the processes of a run that have not ended. Numbers of processes are used again.
func (o *oracle) left(fence string) []string {
	var list []string
	for pid := range strings.FieldsSeq(contents(filepath.Join(o.dir, "pids."+fence))) {
		if number, _ := strconv.Atoi(pid); alive(pid) && fenceOf(number) == fence {
			list = append(list, pid)
		}
	}
	return list
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

// workerOf returns the process id of the docent that runs the command, the guard's child; 0 if it has
// ended, or has not been started.
func workerOf(p *program) int {
	for _, child := range childrenOf(p.Process.Pid) {
		if strings.Contains(contents(fmt.Sprintf("/proc/%d/cmdline", child)), "exec\x00--connect") {
			return child
		}
	}
	return 0
}
