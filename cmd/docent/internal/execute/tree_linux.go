package execute

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// A tree is CMD with all that it starts: what is below this process, which is docent or its guard, and what is in the
// cgroup.
type tree struct {
	cgroup *cgroup
	before []int // children of the program that became docent: they are not CMD's
	leader int   // in docent: CMD, which is not reaped
	docent int   // in the guard: the child that is not CMD's

	reaping sync.Mutex // held to reap children, and to look at them
}

// grow makes this process, whose name becomes the name, the one that gets what CMD leaves behind.
func (t *tree) grow(name string) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	setName(name)
	t.before, _ = children(os.Getpid())
	return nil
}

// The names of a docent exec's processes, as ps shows them: of its guard if it has one, of the guard's child, and of the
// starter. No program has the first one from its file: its name has a blank.
const (
	execName    = "docent exec"
	childName   = "docent-child"
	starterName = "docent-starter"
)

// setName sets the name of this process.
func setName(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) } // else it is "exe"

// isDocent reports whether the process is a docent exec, which passes signals on.
func isDocent(e processEntry) bool { return e.name == execName }

// find calls visit for each process of the tree that has not ended, parents first and as soon as it is found. It
// leaves out what is below a process for which visit returns false. With an error it may have missed some. The children
// of a process may be left to the first one of another pid namespace: those are in the cgroup alone.
func (t *tree) find(visit func(processEntry) bool) error {
	seen := map[int]bool{os.Getpid(): true}
	for _, pid := range t.before {
		seen[pid] = true
	}
	err := walk(os.Getpid(), seen, func(e processEntry) bool { return e.pid == t.docent || visit(e) })
	for _, pid := range t.cgroup.pids() {
		if e, ok, fault := entryOf(pid); fault == nil && ok && running(e) && !seen[pid] {
			visit(e)
		}
	}
	return err
}

// running returns the processes of the tree that have not ended. With an error it lacks some.
func (t *tree) running() (list []processEntry, fault error) {
	fault = t.find(func(e processEntry) bool {
		list = append(list, e)
		return true
	})
	return list, fault
}

// An identity tells a process from a later one of the same number.
type identity struct {
	pid     int
	started string
}

// maxRounds bounds how often docent looks for processes that were started meanwhile.
const maxRounds = 100

// signal sends the signal, which is not KILL, to each process of the tree, once: to those of CMD's group together. It
// looks for all before it sends any, because what a process that ends has started may be missed, and looks again until
// there are no further ones. It leaves out what is below another docent exec, which passes the signal on. It returns
// those that the system did not let have it.
func (t *tree) signal(sig syscall.Signal) (refused []processEntry) {
	seen := make(map[identity]bool)
	for round := range maxRounds {
		var further []processEntry
		_ = t.find(func(e processEntry) bool { // what it misses, a later round finds
			if id := (identity{e.pid, e.started}); !seen[id] {
				seen[id] = true
				further = append(further, e)
			}
			return !isDocent(e)
		})
		if round == 0 {
			_ = unix.Kill(-t.leader, sig) // it needs no free file; an empty group is gone already
		} else if len(further) == 0 {
			break
		}
		for _, e := range further {
			if e.group == t.leader && stays(e) && !errors.Is(unix.Kill(e.pid, 0), unix.EPERM) {
				continue // it has got the signal
			}
			if err := signalTo(e, sig); err != nil && !errors.Is(err, unix.ESRCH) {
				refused = append(refused, e)
			}
		}
	}
	return refused
}

// stays reports whether the process is still in its group. One that has left it since it was found may have done so
// before the group's signal, and rather gets the signal twice than not at all.
func stays(e processEntry) bool {
	now, ok, err := entryOf(e.pid)
	return err == nil && ok && now.group == e.group
}

// signalTo sends the signal to the process, and not to a later one of the same number.
func signalTo(e processEntry, sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(e.pid, 0)
	if err != nil { // ESRCH, or the kernel is older than 5.3, or no more files may be opened
		return unix.Kill(e.pid, sig)
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written to it
	if now, ok, err := entryOf(e.pid); err == nil && (!ok || now.started != e.started) {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// huntFor bounds one hunt. KILL is sent again while something is left.
const huntFor = 100 * time.Millisecond

// A bag is what a hunt has left.
type bag struct {
	left    []processEntry // what it has not seen ended
	refused []processEntry // those of them that the system does not let docent end
	done    bool           // that there is nothing else
	found   bool           // that there was anything to end
}

// hunt sends KILL until nothing of the tree is left but what the system does not let docent end, or the time is over.
func (t *tree) hunt() (b bag) {
	t.reaping.Lock()
	defer t.reaping.Unlock()
	self := os.Getpid()
	list, err := openProc(fmt.Sprintf("%d/task/%d/children", self, self))
	if err == nil { // else the rounds find them
		defer list.Close()
	}
	for until := time.Now().Add(huntFor); ; {
		whole := t.cgroup.kill()
		for list != nil && t.killChildren(list) && time.Now().Before(until) { // as fast as it can: each may start the next one
			b.found = true
		}
		b.left, b.refused = t.round(whole)
		b.found = b.found || len(b.left) > 0
		b.done = len(b.left) == len(b.refused) && t.alone(b.refused)
		if b.done || !time.Now().Before(until) {
			return b
		}
		<-time.After(time.Millisecond)
	}
}

// killChildren sends KILL to the children of this process's main thread, and reaps those that have ended. What
// they start comes to that thread when they end, unless another process between them takes it. A child that is not
// reaped keeps its number, so there is no need to look at it before. It reports whether it has reaped any.
func (t *tree) killChildren(list *os.File) (ended bool) {
	var text [16 << 10]byte
	n, _ := list.ReadAt(text[:], 0)
	whole := text[:bytes.LastIndexByte(text[:n], ' ')+1] // the rest, which may begin within a number, comes next
	for word := range bytes.FieldsSeq(whole) {
		pid, err := strconv.Atoi(string(word))
		if err != nil || pid == t.docent || slices.Contains(t.before, pid) {
			continue
		}
		_ = unix.Kill(pid, unix.SIGKILL)
		ended = pid != t.leader && reapIfEnded(pid) || ended
	}
	return ended
}

// round stops each process when it finds it, so that it starts no further one, until it finds none. Then it
// ends them all. What was left to docent gets KILL at once: its own children come to docent.
func (t *tree) round(whole bool) (left, refused []processEntry) {
	seen := make(map[identity]bool)
	for range maxRounds {
		before := len(left)
		_ = t.find(func(e processEntry) bool {
			id := identity{e.pid, e.started}
			if seen[id] {
				return true
			}
			seen[id] = true
			left = append(left, e)
			sig := syscall.SIGSTOP
			if e.parent == os.Getpid() || e.parent == t.docent {
				sig = syscall.SIGKILL
			}
			if err := signalTo(e, sig); errors.Is(err, unix.EPERM) && !(whole && t.cgroup.has(e.pid)) {
				refused = append(refused, e)
			}
			return true
		})
		if len(left) == before {
			break
		}
	}
	for _, e := range left {
		_ = signalTo(e, syscall.SIGKILL) // it may have ended
	}
	return left, refused
}

// alone reports whether nothing is left to this process, ended ones included, but what can't be ended. A round may miss
// a process whose parent ends while it looks. When the parent has ended, it is this process's child.
func (t *tree) alone(refused []processEntry) bool {
	list, err := t.strays()
	list = slices.DeleteFunc(list, func(pid int) bool {
		return slices.ContainsFunc(refused, func(e processEntry) bool { return e.pid == pid })
	})
	for _, pid := range list {
		reapIfEnded(pid) // else the next look finds it again
	}
	return err == nil && len(list) == 0
}

// strays returns the processes that were left to this one, ended ones included. With an error the list lacks some.
func (t *tree) strays() ([]int, error) {
	list, err := children(os.Getpid())
	return slices.DeleteFunc(list, func(pid int) bool {
		return pid == t.leader || pid == t.docent || slices.Contains(t.before, pid)
	}), err
}

// reap reaps the processes that were left to this one and have ended.
func (t *tree) reap() {
	t.reaping.Lock()
	defer t.reaping.Unlock()
	list, _ := t.strays()
	for _, pid := range list {
		reapIfEnded(pid)
	}
}

// anyLeft reports whether CMD has left anything behind. Processes become docent's children when their parents end, in
// whatever group or session they are. So if docent has no child but CMD, nothing is left. Meanwhile no child is
// reaped: a process that starts another one and ends stays visible.
func (t *tree) anyLeft() bool {
	t.reaping.Lock()
	defer t.reaping.Unlock()
	strays, err := t.strays()
	return len(strays) > 0 || err != nil || len(t.cgroup.pids()) > 0
}

// reapIfEnded reaps the child if it has ended, and reports whether it has.
func reapIfEnded(pid int) bool {
	reaped, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	return err == nil && reaped == pid
}

// reapAtEnd waits for the end of the child and returns its status.
func reapAtEnd(pid int) (status syscall.WaitStatus) {
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			return status
		}
	}
}

// describe names the processes for a message.
func describe(list []processEntry) []string {
	names := make([]string, 0, len(list))
	for _, e := range list {
		names = append(names, fmt.Sprintf("%s (pid %d)", cli.Safe(e.name), e.pid))
	}
	return names
}
