package zktest_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/docent-go/docent/internal/freeport"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/zktest"
)

func TestHeldBytesAreLateNotLost(t *testing.T) {
	t.Parallel()
	link := newLink(t, echo(t))
	client := dialLink(t, link)
	exchange(t, client, "before")

	link.SetOpen(false)
	if _, err := client.Write([]byte("during")); err != nil {
		t.Fatalf("write to a held link: %v; want nobody told", err)
	}
	must.OK(t, client.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	if n, err := client.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read from a held link = %d, %v; want it to wait", n, err)
	}

	link.SetOpen(true)
	if got := read(t, client, len("during")); got != "during" {
		t.Errorf("after the hold: %q; want what was sent", got)
	}
	exchange(t, client, "after")
}

func TestConnectionsMadeDuringAHoldWork(t *testing.T) {
	t.Parallel()
	link := newLink(t, echo(t))
	link.SetOpen(false)
	client := dialLink(t, link)
	must.Get(client.Write([]byte("early")))(t)
	link.SetOpen(true)
	if got := read(t, client, len("early")); got != "early" {
		t.Errorf("after the hold: %q; want what was sent", got)
	}
}

func TestTheEndOfOneSideIsTheEndOfTheOther(t *testing.T) {
	t.Parallel()
	listener := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer listener.Close()
	link := newLink(t, listener.Addr().String())
	for _, closer := range []string{"client", "server"} {
		t.Run("the "+closer+"'s", func(t *testing.T) {
			client := dialLink(t, link)
			server := must.Get(listener.Accept())(t)
			defer server.Close()
			first, other := client, server
			if closer == "server" {
				first, other = server, client
			}
			must.OK(t, first.Close())
			limit(t, other)
			if _, err := other.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("read at the other side: %v; want the connection closed", err)
			}
		})
	}
}

func TestLinkWaitsForItsTargetToListen(t *testing.T) {
	t.Parallel()
	address := freeport.Addr(t)
	link := newLink(t, address)
	client := dialLink(t, link)
	listener := must.Get(net.Listen("tcp4", address))(t)
	defer listener.Close()
	server := must.Get(listener.Accept())(t)
	defer server.Close()
	must.Get(client.Write([]byte("x")))(t)
	if got := read(t, server, 1); got != "x" {
		t.Errorf("target reads %q; want x", got)
	}
}

func TestClosedLinkLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{true, false} {
		t.Run("open: "+strconv.FormatBool(open), func(t *testing.T) {
			link := newLink(t, echo(t))
			client := dialLink(t, link)
			exchange(t, client, "hello")
			link.SetOpen(open)
			must.Get(client.Write([]byte("lost")))(t)
			must.OK(t, link.Close())
			limit(t, client)
			if _, err := io.Copy(io.Discard, client); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection stands after the link's close")
			}
			if err := link.Close(); err != nil {
				t.Errorf("second close: %v", err)
			}
		})
	}
}

func newLink(t testing.TB, target string) zktest.TestLink {
	t.Helper()
	link := must.Get(zktest.NewLink(target))(t)
	t.Cleanup(func() { must.OK(t, link.Close()) })
	return link
}

func dialLink(t testing.TB, link zktest.TestLink) net.Conn {
	t.Helper()
	conn := must.Get(net.Dial("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(link.Port))))(t)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// echo returns the address of a server that sends back all it gets.
func echo(t testing.TB) string {
	t.Helper()
	listener := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, conn)
	}()
	t.Cleanup(func() { listener.Close(); <-done })
	return listener.Addr().String()
}

func exchange(t testing.TB, conn net.Conn, text string) {
	t.Helper()
	must.Get(conn.Write([]byte(text)))(t)
	if got := read(t, conn, len(text)); got != text {
		t.Fatalf("echo of %q: %q", text, got)
	}
}

func read(t testing.TB, conn net.Conn, n int) string {
	t.Helper()
	limit(t, conn)
	buf := make([]byte, n)
	must.Get(io.ReadFull(conn, buf))(t)
	return string(buf)
}

// limit keeps a test that fails from waiting forever.
func limit(t testing.TB, conn net.Conn) {
	t.Helper()
	must.OK(t, conn.SetReadDeadline(time.Now().Add(soon)))
}

func TestElectionGreetingNamesTheForwarder(t *testing.T) {
	t.Parallel()
	const head = "ffffffffffff0000" + "0000000000000001"
	greeting := func(address string) []byte {
		b := must.Get(hex.DecodeString(head))(t)
		return append(append(b, 0, 0, 0, byte(len(address))), address...)
	}
	got, err := zktest.Announce(9999, 54321, append(greeting("127.0.0.1:9999"), "what follows"...))
	if want := greeting("127.0.0.1:54321"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("greeting = %q, %v; want %q", got, err, want)
	}
	other := greeting("127.0.0.1:8888")
	if got, err := zktest.Announce(9999, 54321, other); err != nil || !bytes.Equal(got, other) {
		t.Errorf("somebody else's greeting = %q, %v; want it unchanged", got, err)
	}
	if _, err := zktest.Announce(9999, 54321, other[:len(other)-1]); err == nil {
		t.Error("greeting cut short: want an error")
	}
	other[16] = 0xff
	if _, err := zktest.Announce(9999, 54321, other); err == nil {
		t.Error("greeting with a negative length: want an error")
	}
}
