package zktest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// owner is the alias of the interfaces on the clients' side, which says whose they are:
// the process id, and the namespace of processes in which it is one.
func owner(pid int) string {
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		space = "unknown"
	}
	return fmt.Sprintf("zktest/%s/%d", space, pid)
}

// sweep removes what ended processes have left. If it can't remove something, the next draw is of
// another subnet.
func sweep() {
	links, err := net.Interfaces()
	if err != nil {
		return
	}
	for _, link := range links {
		if strings.HasPrefix(link.Name, outerPrefix) && abandoned(link.Name) {
			_ = namespace{}.batch("ip", "link del "+link.Name) // another process may do so, too
		}
	}
}

// abandoned reports whether an interface is of a process that is gone.
func abandoned(name string) bool {
	alias, err := os.ReadFile(filepath.Join("/sys/class/net", name, "ifalias"))
	if err != nil {
		return false
	}
	text := strings.TrimSpace(string(alias))
	pid, err := strconv.Atoi(text[strings.LastIndexByte(text, '/')+1:])
	return err == nil && text == owner(pid) && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
