package zkserver

import (
	"fmt"
	"time"
)

// DecodeFrame decodes a client's frame as the server does: as the handshake and as a
// request.
func DecodeFrame(frame []byte) error {
	_, err := parseConnect(frame)
	if _, asRequest := parseRequest(frame); asRequest == nil {
		err = nil
	}
	return err
}

// LonePassed is what the timer calls when the front end has been without a leader for long.
func LonePassed(f *Frontend) { f.lonePassed() }

// ServesReads reports whether the front end serves reads without a leader.
func ServesReads(f *Frontend) bool {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	return f.readOnly != nil
}

// WatchAndEnd has each of many connections watch a path of its own and then some of them end. It returns how long
// either takes.
func WatchAndEnd(many, some int) (watch, end time.Duration) {
	table := newWatchTable(&config{})
	conns := make([]*conn, many)
	began := time.Now()
	for i := range conns {
		conns[i] = &conn{}
		table.add(fmt.Sprintf("/%d", i), conns[i], watchOnce)
	}
	ending := time.Now()
	for _, c := range conns[:some] {
		table.removeConn(c)
	}
	return ending.Sub(began), time.Since(ending)
}
