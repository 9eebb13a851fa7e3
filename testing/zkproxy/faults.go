package zkproxy

import (
	"fmt"
	"net"
	"strconv"
	"time"
)

// Cut closes all connections, towards the clients and towards the server, and returns how many
// there were. Bytes under way are lost. New connections are treated as before: to simulate a
// server that is down, call Refuse, then Cut.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
	return len(p.links)
}

// Blackhole stops all bytes in direction d, on existing connections and on new ones, and keeps the
// connections open. The bytes are withheld and delivered after Heal; they aren't lost. A frame
// whose delivery has begun when Blackhole is called may still arrive. A dial still succeeds, as it
// does to a stopped server, and the handshake isn't answered. Other directions are as before. It
// panics if d is not one of the package's constants.
func (p *Proxy) Blackhole(d Direction) {
	switch d {
	case ToServer:
		p.toServer.Set(false)
	case ToClient:
		p.toClient.Set(false)
	case Both:
		p.toServer.Set(false)
		p.toClient.Set(false)
	default:
		panic(fmt.Sprintf("zkproxy: direction %v: must be ToServer, ToClient or Both", d))
	}
}

// Refuse makes new connections fail: they are reset as soon as they stand, so that the
// client's dial or its first read or write tells it. (The port stays bound: no other
// process can take it.) [Proxy.Dial] fails. Connections that stand are left alone.
func (p *Proxy) Refuse() { p.refusing.Store(true) }

// Hang makes new connections stand and get no answer, as those to a stopped process
// do, without touching the connections there are. They are served after
// Heal, if their clients still wait. It takes the place of Refuse.
func (p *Proxy) Hang() {
	p.refusing.Store(false)
	p.admission.Set(false)
}

// SetLatency adds rtt to the time a round trip takes, one half in each direction.
// Frames that follow one another closely still do so on arrival: it is latency, and
// no limit to throughput. It holds for what the proxy receives from then on; 0
// ends it. A round trip takes a little longer than that: some 40 microseconds for
// the proxy itself, and some 100 for waking up twice (BenchmarkRoundTrip). It
// panics if rtt is negative.
func (p *Proxy) SetLatency(rtt time.Duration) {
	if rtt < 0 {
		panic(fmt.Sprintf("zkproxy: rtt %v: must be at least 0", rtt))
	}
	p.latency.Store(int64(rtt / 2))
}

// SetBandwidth limits each direction of each connection to n bytes per second. It holds for what is
// delivered from then on; 0 ends it. It panics if n is negative.
func (p *Proxy) SetBandwidth(n int) {
	if n < 0 {
		panic(fmt.Sprintf("zkproxy: bandwidth %d: must be at least 0", n))
	}
	p.bandwidth.Store(int64(n))
}

// Heal ends Blackhole, Refuse and Hang, and releases what they withheld. Latency, bandwidth and rules
// stay: SetLatency(0), SetBandwidth(0) and Rules().Clear() end those.
func (p *Proxy) Heal() {
	p.refusing.Store(false)
	p.admission.Set(true)
	p.toServer.Set(true)
	p.toClient.Set(true)
}

// refuse resets the connection, the nearest to a refusal that a bound port can do.
func refuse(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // fails only if the peer is gone already
	_ = conn.Close()
}

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
