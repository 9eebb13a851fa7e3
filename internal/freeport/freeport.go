// Package freeport finds ports of the loopback interface that no process uses. It serves docent's
// test kit and tests.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// Ports are drawn below the range from which systems take the ports of outgoing connections (32768
// and up on Linux). An outgoing connection could otherwise have the port of a server that binds it
// after the draw, or again at a restart. It could even be connected to itself.
const (
	lowest  = 10000
	highest = 32000
)

// Draw returns n different ports that were free a moment ago. Another process may bind one before
// the caller does.
func Draw(n int) ([]int, error) {
	drawn := make(map[int]bool, n)
	ports := make([]int, 0, n)
	for range 100 * n {
		port := lowest + rand.N(highest-lowest)
		if drawn[port] || !free(port) {
			continue
		}
		drawn[port] = true
		ports = append(ports, port)
		if len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("fewer than %d free ports between %d and %d", n, lowest, highest)
}

// Addr returns an address of this host at which no server listens.
func Addr(t testing.TB) string {
	t.Helper()
	return addr(must.Get(Draw(1))(t)[0])
}

func addr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
