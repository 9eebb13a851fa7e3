package zktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A subnet is a 10.x.y.0/24. The x and y are also in the names of the interfaces on the
// clients' side, so that two ensembles can't have the same.
type subnet struct{ x, y int }

// drawSubnet returns one in which this machine has no address and no network. Two that
// draw the same one find out when they make their first interface, and one of them
// draws again.
func drawSubnet() (subnet, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return subnet{}, err
	}
	for range 1000 {
		s := subnet{rand.N(256), rand.N(256)}
		if !slices.ContainsFunc(addrs, s.overlaps) {
			return s, nil
		}
	}
	return subnet{}, errors.New("zktest: no subnet of 10.0.0.0/8 is free")
}

func (s subnet) overlaps(addr net.Addr) bool {
	known, ok := addr.(*net.IPNet)
	drawn := net.IPNet{IP: net.IPv4(10, byte(s.x), byte(s.y), 0), Mask: net.CIDRMask(24, 32)}
	return ok && (known.Contains(drawn.IP) || drawn.Contains(known.IP))
}

// Each member has an address by which the others know it, and a network of four
// addresses with its clients: the second is theirs, the third its own.

func (s subnet) address(last int) string { return fmt.Sprintf("10.%d.%d.%d", s.x, s.y, last) }
func (s subnet) peer(i int) string       { return s.address(101 + i) }
func (s subnet) client(i int) string     { return s.address(4*i + 1) }
func (s subnet) server(i int) string     { return s.address(4*i + 2) }

// outer is the name of a member's interface on the clients' side, clientsDevice and
// peerDevice are those of its own.
func (s subnet) outer(i int) string { return fmt.Sprintf("%s%d.%d.%d", outerPrefix, s.x, s.y, i+1) }

const (
	outerPrefix   = "zkt"
	clientsDevice = "clients"
)

func peerDevice(i int) string { return fmt.Sprintf("peer%d", i+1) }

// hardware is the address of the interface at one end of a link: of a member's that
// faces another, or with 0 the clients.
func hardware(own, facing int) string { return fmt.Sprintf("02:00:00:00:%02x:%02x", own, facing) }

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
