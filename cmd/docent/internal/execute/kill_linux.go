package execute

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxRounds bounds how often signalAll looks for processes that were started meanwhile.
const maxRounds = 100

// A finder calls visit for each process, parents first and as soon as it has found it. It leaves out what is
// below a process for which visit returns false.
type finder func(visit func(processEntry) bool) error

// An identity tells a process from a later one of the same number.
type identity struct {
	pid     int
	started string
}

// signalAll sends the signal to each process, once: to those of the group together. It looks for all before it
// sends any, because what a process that ends has started may be missed, and looks again until there are no
// further ones. It leaves out what is below another docent exec, which passes the signal on. It returns those that
// the system did not let have it.
func signalAll(sig syscall.Signal, group int, find finder) (refused []processEntry) {
	seen := make(map[identity]bool)
	for round := range maxRounds {
		var further []processEntry
		_ = find(func(e processEntry) bool { // what it misses, a later round finds
			if id := (identity{e.pid, e.started}); !seen[id] {
				seen[id] = true
				further = append(further, e)
			}
			return !isDocent(e)
		})
		if round == 0 {
			_ = unix.Kill(-group, sig) // it needs no free file; an empty group is gone already
		} else if len(further) == 0 {
			break
		}
		for _, e := range further {
			if e.group == group && stays(e) && !errors.Is(unix.Kill(e.pid, 0), unix.EPERM) {
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

// execName is the name of a docent exec, as ps shows it: of its guard if it has one, whose child has childName. No
// program has the first one from its file: its name has a blank.
const (
	execName  = "docent exec"
	childName = "docent-child"
)

// setName sets the name of this process.
func setName(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) } // else it has its file's name

// isDocent reports whether the process is a docent exec, which passes signals on.
func isDocent(e processEntry) bool { return e.name == execName }

// A hunt ends processes that may start further ones while they are ended.
type hunt struct {
	cgroup *cgroup
	find   finder
	spared []int // children of this process that need not end
	keep   int   // the child that is not reaped
	stems  []int // processes of docent's: what is left behind becomes their child
}

// A bag is what a hunt has left.
type bag struct {
	left    []processEntry // what it has not seen ended
	refused []processEntry // those of them that the system does not let docent end
	done    bool           // that there is nothing else
	found   bool           // that there was anything to end
}

// run sends KILL until nothing is left but what the system does not let docent end, or the time is over. The caller
// makes sure that no other goroutine reaps this process's children.
func (h *hunt) run(limit time.Duration) bag {
	self := os.Getpid()
	list, err := openProc(fmt.Sprintf("%d/task/%d/children", self, self))
	if err == nil { // else the rounds find them
		defer list.Close()
	}
	found := false
	for until := time.Now().Add(limit); ; {
		whole := h.cgroup.kill()
		for list != nil && h.killChildren(list) && time.Now().Before(until) { // as fast as it can: each may start the next one
			found = true
		}
		left, refused := h.round(whole)
		found = found || len(left) > 0
		done := len(left) == len(refused) && h.alone(refused)
		if done || !time.Now().Before(until) {
			return bag{left, refused, done, found}
		}
		<-time.After(time.Millisecond)
	}
}

// alone reports whether this process has no child, ended ones included, but those that need not end, or can't be
// ended. A round may miss a process whose parent ends while it looks. When the parent has ended, it is docent's child.
func (h *hunt) alone(refused []processEntry) bool {
	list, err := children(os.Getpid())
	alone := err == nil
	for _, pid := range list {
		if pid == h.keep || slices.Contains(h.spared, pid) || slices.ContainsFunc(refused, func(e processEntry) bool { return e.pid == pid }) {
			continue
		}
		alone = false
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // it may run; else the next look does not find it
	}
	return alone
}

// killChildren sends KILL to the children of this process's main thread, and reaps those that have ended. What
// they start comes to that thread when they end, unless another process between them takes it. A child that is not
// reaped keeps its number, so there is no need to look at it before. It reports whether it has reaped any.
func (h *hunt) killChildren(list *os.File) (ended bool) {
	var text [16 << 10]byte
	n, _ := list.ReadAt(text[:], 0)
	whole := text[:bytes.LastIndexByte(text[:n], ' ')+1] // the rest, which may begin within a number, comes next
	for word := range bytes.FieldsSeq(whole) {
		pid, err := strconv.Atoi(string(word))
		if err != nil || slices.Contains(h.spared, pid) {
			continue
		}
		_ = unix.Kill(pid, unix.SIGKILL)
		if pid == h.keep {
			continue
		}
		if reaped, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); err == nil && reaped == pid {
			ended = true
		}
	}
	return ended
}

// round stops each process when it finds it, so that it starts no further one, until it finds none. Then it
// ends them all. What was left to docent gets KILL at once: its own children come to docent.
func (h *hunt) round(whole bool) (left, refused []processEntry) {
	seen := make(map[identity]bool)
	for range maxRounds {
		before := len(left)
		_ = h.find(func(e processEntry) bool {
			id := identity{e.pid, e.started}
			if seen[id] {
				return true
			}
			seen[id] = true
			left = append(left, e)
			sig := syscall.SIGSTOP
			if slices.Contains(h.stems, e.parent) {
				sig = syscall.SIGKILL
			}
			if err := signalTo(e, sig); errors.Is(err, unix.EPERM) && !(whole && h.cgroup.has(e.pid)) {
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

// refusing returns those of the processes that this one may not send signals to, and can't end by the cgroup:
// they run as another user.
func refusing(list []processEntry, c *cgroup) []processEntry {
	var found []processEntry
	for _, e := range list {
		if errors.Is(unix.Kill(e.pid, 0), unix.EPERM) && !c.has(e.pid) {
			found = append(found, e)
		}
	}
	return found
}
