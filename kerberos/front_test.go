package kerberos_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// The first byte of a request to a KDC says which it is.
const (
	loginRequest  = 0x6a
	ticketRequest = 0x6c
)

// A front is between a client and the KDC. It counts requests, and answers them itself if the test
// says so.
type front struct {
	logins, tickets atomic.Int32

	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex // guards following
	answer func(request []byte) (reply []byte, ok bool)
	conns  map[net.Conn]bool
}

// runFront starts a front of the realm's KDC.
func runFront(t *testing.T, r *realm) *front {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	f := &front{listener: l, conns: make(map[net.Conn]bool)}
	f.work.Go(func() { f.serve(r) })
	t.Cleanup(f.stop)
	return f
}

func (f *front) addr() string { return f.listener.Addr().String() }

// stop ends the front: no server listens at its address then.
func (f *front) stop() {
	f.listener.Close()
	f.mu.Lock()
	for conn := range f.conns {
		conn.Close()
	}
	f.mu.Unlock()
	f.work.Wait()
}

// answerBy makes the front give what fn returns as the reply, unframed. If ok is false, the request
// goes to the KDC.
func (f *front) answerBy(fn func(request []byte) (reply []byte, ok bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = fn
}

func (f *front) serve(r *realm) {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.conns[conn] = true
		f.mu.Unlock()
		f.work.Go(func() {
			defer conn.Close()
			f.handle(conn, r)
		})
	}
}

func (f *front) handle(conn net.Conn, r *realm) {
	request, err := readMessage(conn)
	if err != nil || len(request) == 0 {
		return
	}
	switch request[0] {
	case loginRequest:
		f.logins.Add(1)
	case ticketRequest:
		f.tickets.Add(1)
	}
	f.mu.Lock()
	answer := f.answer
	f.mu.Unlock()
	if answer != nil {
		if reply, ok := answer(request); ok {
			_, _ = conn.Write(reply)
			return
		}
	}
	kdc, err := net.Dial("tcp", r.addr())
	if err != nil {
		return
	}
	defer kdc.Close()
	if _, err := kdc.Write(framed(request)); err == nil {
		_, _ = io.Copy(conn, io.LimitReader(kdc, 4))
		_, _ = io.Copy(conn, kdc)
	}
}

func readMessage(conn net.Conn) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	message := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err := io.ReadFull(conn, message)
	return message, err
}

func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

// runSilent starts a KDC that accepts connections and answers nothing.
func runSilent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the system accepts; no process reads
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}
