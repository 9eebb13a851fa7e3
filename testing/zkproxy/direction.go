package zkproxy

import "strconv"

// A Direction is one of the two ways through a proxy, or both.
type Direction int

// The directions of [Proxy.Blackhole].
const (
	ToServer Direction = iota + 1 // from the clients to the server
	ToClient                      // from the server to the clients
	Both
)

// String returns the name of the constant, such as "ToServer".
func (d Direction) String() string {
	if d < ToServer || d > Both {
		return "Direction(" + strconv.Itoa(int(d)) + ")"
	}
	return [...]string{ToServer: "ToServer", ToClient: "ToClient", Both: "Both"}[d]
}
