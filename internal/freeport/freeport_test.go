package freeport_test

import (
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/docent-go/docent/internal/freeport"
	"github.com/docent-go/docent/internal/must"
)

func TestDraw(t *testing.T) {
	t.Parallel()
	outgoing := 32768
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		outgoing = must.Get(strconv.Atoi(strings.Fields(string(text))[0]))(t)
	}
	seen := make(map[int]bool)
	for _, port := range must.Get(freeport.Draw(100))(t) {
		if seen[port] {
			t.Errorf("port %d twice", port)
		}
		seen[port] = true
		if port >= outgoing {
			t.Errorf("port %d, want it below %d: from there on outgoing connections take them", port, outgoing)
		}
	}
}

func TestAddr(t *testing.T) {
	t.Parallel()
	addr := freeport.Addr(t)
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Errorf("%s takes connections", addr)
	}
}

// TestAPortOfAListenerIsNotFree asks for ports of listeners on this address and on all addresses.
func TestAPortOfAListenerIsNotFree(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "0.0.0.0", ""} {
		l := must.Get(net.Listen("tcp", net.JoinHostPort(host, "0")))(t)
		port := l.Addr().(*net.TCPAddr).Port
		if freeport.Free(port) {
			t.Errorf("the port of a listener at %q is free", host)
		}
		must.OK(t, l.Close())
	}
}

// TestAPortCanBeBoundAtOnce binds each port that is drawn, while other goroutines start processes.
func TestAPortCanBeBoundAtOnce(t *testing.T) {
	t.Parallel()
	program := must.Get(os.Executable())(t)
	over := make(chan struct{})
	var starts sync.WaitGroup
	for range 4 {
		starts.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				p, err := os.StartProcess(program, []string{program, "-test.run=^$"}, &os.ProcAttr{})
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = p.Wait()
			}
		})
	}
	defer starts.Wait()
	defer close(over)
	for range 500 {
		l := must.Get(net.Listen("tcp4", freeport.Addr(t)))(t)
		must.OK(t, l.Close())
	}
}
