package framework_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/zkpath"
	"github.com/docent-go/docent/retry"
)

// FuzzConnectString parses any text without a panic. If it accepts a text, the text names servers
// that can be dialled, and means the same when it is written out and read again.
func FuzzConnectString(f *testing.F) {
	for _, s := range []string{"h1:2181,h2:2181/chroot", "[::1]:2181", "[fe80::1%eth0]", " a , b:1", "a:b@c", "/", ",", "h/", "[[]]:1", "h:00001", "]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		servers, chroot, err := framework.ParseConnectString(s)
		if err != nil {
			if len(servers) > 0 || chroot != "" {
				t.Errorf("%q: %v, %q with error %v", s, servers, chroot, err)
			}
			return
		}
		if chroot != "" && framework.ValidatePath(chroot) != nil || chroot == "/" || len(servers) == 0 {
			t.Errorf("%q: servers %q, chroot %q", s, servers, chroot)
		}
		for _, server := range servers {
			if host, port, err := net.SplitHostPort(server); err != nil || host == "" || port == "" {
				t.Errorf("%q: server %q", s, server)
			}
		}
		again, chroot2, err := framework.ParseConnectString(strings.Join(servers, ",") + chroot)
		if err != nil || strings.Join(again, " ") != strings.Join(servers, " ") || chroot2 != chroot {
			t.Errorf("%q: %q%s, written out and read again %q%s, %v", s, servers, chroot, again, chroot2, err)
		}
	})
}

// FuzzPath checks what is held of paths whatever they are.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"", "/", "/a", "/a/b", "a", "//", "/a/", "/.", "/../a", "/a\x00", "/a\x7f", "/\ue000", "/\uf8ff", "/\xff", "/…", "/ a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		err := framework.ValidatePath(path)
		if err != nil {
			if !errors.Is(err, framework.ErrInvalidPath) {
				t.Errorf("%q: %v", path, err)
			}
			return
		}
		dir, name := zkpath.Split(path)
		if framework.ValidatePath(dir) != nil || strings.Contains(name, "/") {
			t.Errorf("%q splits into %q and %q", path, dir, name)
		}
		if path != "/" && zkpath.Join(dir, name) != path {
			t.Errorf("%q splits into %q and %q, which join to %q", path, dir, name, zkpath.Join(dir, name))
		}
		for element := range strings.SplitSeq(path[1:], "/") {
			if path != "/" && (element == "" || element == "." || element == "..") {
				t.Errorf("%q was accepted", path)
			}
		}
	})
}

// The fuzz tests of this file go through the wire client: whatever a server sends, the process
// goes on, calls return, and Close leaves nothing. Each input has a bubble, so a goroutine that
// is left is a deadlock.

// opcodes are those of the requests that ask makes.
var opcodes = []int32{3, 4, 5, 6, 12, 14, 15}

// FuzzReply answers one request with a frame: as it is, or behind the request's number.
func FuzzReply(f *testing.F) {
	for _, tc := range malformedReplies() {
		frame := tc.frame(3)
		f.Add(byte(tc.opcode), true, frame)
		if len(frame) > 8 {
			f.Add(byte(tc.opcode), false, frame[8:])
		}
	}
	for _, opcode := range opcodes {
		f.Add(byte(opcode), false, goodReply(0, opcode)[4:])
	}
	f.Fuzz(func(t *testing.T, opcode byte, whole bool, frame []byte) {
		converse(t, &rawServer{frames: func(xid, asked int32) []byte {
			switch {
			case asked != int32(opcode):
				return nil
			case whole:
				return append([]byte{}, frame...)
			}
			return frameOf(append(be(xid), frame...))
		}})
	})
}

// FuzzHandshake answers the first handshake of a client with a frame.
func FuzzHandshake(f *testing.F) {
	f.Add(frameOf(goodGreeting(4 * time.Second)))
	f.Add(frameOf(goodGreeting(0)))
	f.Add(frameOf(goodGreeting(-time.Second)))
	f.Add(frameOf(be(0, 4000, int64(0), 16, make([]byte, 17)))) // expired
	f.Add(frameOf(be(0, 4000, int64(7), -1)))
	f.Add(frameOf(be(0, int64(0), -119)))
	f.Add(be(-1))
	f.Add(append(frameOf(goodGreeting(4*time.Second)), frameOf(be(-1, int64(1), 0, -1, -112, 0))...))
	f.Fuzz(func(t *testing.T, greeting []byte) {
		asked := 0
		converse(t, &rawServer{greet: func() []byte {
			if asked++; asked == 1 {
				return greeting
			}
			return frameOf(goodGreeting(4 * time.Second))
		}})
	})
}

// converse has a client make each request and close.
func converse(t *testing.T, srv *rawServer) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := raw(t, srv, framework.WithMaxPacket(framework.MinPacket, framework.MinPacket), framework.WithRetry(retry.Once(0)))
		ctx := within(t, time.Minute)
		for _, opcode := range opcodes {
			_ = ask(ctx, c, opcode) // any error will do
		}
		if w, err := c.Watch(ctx, "/a", framework.WatchData); err == nil {
			_ = ask(ctx, c, 3)
			w.Close()
		}
		start := time.Now()
		c.Close()
		wantWithin(t, start, 10*time.Second)
	})
}
