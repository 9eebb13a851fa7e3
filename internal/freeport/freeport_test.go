package freeport_test

import (
	"net"
	"os"
	"strconv"
	"strings"
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
	must.OK(t, must.Get(net.Listen("tcp", addr))(t).Close())
}
