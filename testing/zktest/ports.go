package zktest

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports are drawn below the range from which systems take the ports of outgoing connections (32768
// and up on Linux). An outgoing connection could otherwise have the port of a server that binds it
// after the draw, or again at a restart.
const (
	lowestPort  = 10000
	highestPort = 32000
)

// drawPorts returns n different ports that were free a moment ago. Another process may bind one
// before the server does: a start answers that with another draw.
func drawPorts(n int) ([]int, error) {
	drawn := make(map[int]bool, n)
	ports := make([]int, 0, n)
	for range 100 * n {
		port := lowestPort + rand.N(highestPort-lowestPort)
		if drawn[port] || !free(port) {
			continue
		}
		drawn[port] = true
		ports = append(ports, port)
		if len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("zktest: fewer than %d free ports between %d and %d", n, lowestPort, highestPort)
}

func free(port int) bool {
	l, err := net.Listen("tcp4", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
