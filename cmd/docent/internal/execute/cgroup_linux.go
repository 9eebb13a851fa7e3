package execute

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A cgroup is a control group of its own for CMD. The kernel ends all of it at once, also processes of other
// users and those that start one another. It is nil if docent may not make one.
type cgroup struct {
	dir  *os.File
	path string
}

// killFile is the file of a cgroup whose processes the kernel ends when 1 is written to it. Linux has it
// since 5.14.
const killFile = "cgroup.kill"

// cgroupPrefix begins the names of docent's cgroups.
const cgroupPrefix = "docent-"

// makeCgroup makes a cgroup below this process's own, and returns nil if it may not.
func makeCgroup() *cgroup {
	parent := ownCgroup()
	if parent == "" {
		return nil
	}
	sweep(parent)
	path := filepath.Join(parent, cgroupPrefix+rand.Text())
	if os.Mkdir(path, 0o755) != nil {
		return nil
	}
	dir, err := os.Open(path)
	if err == nil {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_SH)
		_, fault := os.Stat(filepath.Join(path, killFile)) // another docent may have removed it before it was locked
		err = errors.Join(err, fault)
	}
	if err != nil {
		_ = os.Remove(path) // it is empty
		return nil
	}
	return &cgroup{dir, path}
}

// sweep removes the cgroups of docents whose processes were both killed. The descriptors of the others have locks.
func sweep(parent string) {
	paths, _ := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*"))
	for _, path := range paths {
		dir, err := os.Open(path)
		if err != nil {
			continue
		}
		if unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			sweep(path)          // of nested execs
			_ = unix.Rmdir(path) // unless a process is left there
		}
		_ = dir.Close()
	}
}

// ownCgroup returns the directory of this process's cgroup of version 2, "" if there is none.
func ownCgroup() string {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(groups)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return cgroupDirectory(path, string(mounts))
		}
	}
	return ""
}

// cgroupDirectory returns the directory of a cgroup by the lines of mountinfo.
func cgroupDirectory(path, mounts string) string {
	for line := range strings.Lines(mounts) {
		mount, system, _ := strings.Cut(line, " - ")
		fields := strings.Fields(mount)
		if len(fields) < 5 || !strings.HasPrefix(system, "cgroup2 ") {
			continue
		}
		inside, err := filepath.Rel(fields[3], path)
		if err == nil && filepath.IsLocal(inside) {
			return filepath.Join(fields[4], inside)
		}
	}
	return ""
}

// kill ends all processes of the cgroup, and reports whether it could.
func (c *cgroup) kill() bool {
	if c == nil {
		return false
	}
	fd, err := unix.Openat(int(c.dir.Fd()), killFile, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }() // the kernel has read all
	_, err = unix.Write(fd, []byte("1"))
	return err == nil
}

// pids returns the processes of the cgroup and of those below it. Ended ones don't count.
func (c *cgroup) pids() []int {
	if c == nil {
		return nil
	}
	var list []int
	root := os.DirFS(fmt.Sprintf("/proc/self/fd/%d", c.dir.Fd())) // its path may have been renamed or covered
	_ = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil //nolint:nilerr // a cgroup that was removed meanwhile
		}
		text, _ := fs.ReadFile(root, filepath.Join(path, "cgroup.procs"))
		list = append(list, parseNumbers(strings.Fields(string(text)))...)
		return nil
	})
	return slices.DeleteFunc(list, func(pid int) bool { return pid == 0 }) // it is not in this pid namespace
}

// has reports whether the process is in the cgroup.
func (c *cgroup) has(pid int) bool { return c != nil && slices.Contains(c.pids(), pid) }

// remove moves what still runs to the cgroup that docent is in, and removes the cgroup.
func (c *cgroup) remove() {
	if c == nil || c.path == "" {
		return
	}
	for _, pid := range c.pids() {
		_ = os.WriteFile(filepath.Join(filepath.Dir(c.path), "cgroup.procs"), []byte(strconv.Itoa(pid)), 0) // it may have ended
	}
	var below []string
	_ = filepath.WalkDir(c.path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			below = append(below, path)
		}
		return nil
	})
	for _, path := range slices.Backward(below) {
		if err := unix.Rmdir(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break // a process could not be moved: the cgroup stays
		}
	}
	_ = c.dir.Close()
	c.path = ""
}
