package zkproxy_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkproxy"
	"github.com/docent-go/docent/testing/zkserver"
)

// echo is a server that sends back what it receives. It answers a single connection,
// and hands over all it got when that has ended.
func echo(t *testing.T) (addr string, next func() <-chan []byte) {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String(), func() <-chan []byte {
		received := make(chan []byte, 1)
		go func() {
			var all bytes.Buffer
			defer func() { received <- all.Bytes() }()
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.Copy(conn, io.TeeReader(conn, &all)) // the test compares
		}()
		return received
	}
}

func TestProxyChangesNoByte(t *testing.T) {
	t.Parallel()
	addr, next := echo(t)
	proxy := zkproxy.Run(t, addr)
	// A rule that looks into every frame, and changes none.
	proxy.Rules().Add(fault.Rule{Path: "/**", Action: fault.Pass, Times: fault.Forever})
	rapid.Check(t, func(rt *rapid.T) {
		received := next()
		whole, part := drawStream(rt)
		conn, err := net.DialTimeout("tcp", proxy.Addr(), soon)
		if err != nil {
			rt.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(soon)) // fails on a closed connection, as does what follows
		written := make(chan error, 1)
		cuts := rapid.SliceOfN(rapid.IntRange(1, 2*zkproxy.Chunk), 0, 8).Draw(rt, "writes")
		go func() { written <- writeIn(conn, whole, cuts) }()
		got := make([]byte, len(whole))
		if n, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, whole) {
			rt.Errorf("%d of %d bytes came back, %v", n, len(whole), err)
		}
		if err := <-written; err != nil {
			rt.Errorf("sending: %v", err)
		}
		if _, err := conn.Write(part); err != nil {
			rt.Errorf("sending: %v", err)
		}
		if err := conn.Close(); err != nil {
			rt.Errorf("closing: %v", err)
		}
		want := slices.Concat(whole, part)
		if got := <-received; !bytes.Equal(got, want) {
			rt.Errorf("the server received %d bytes; want the %d that were sent", len(got), len(want))
		}
	})
}

// drawStream draws what a client sends: whole frames, and a piece of one.
func drawStream(rt *rapid.T) (whole, part []byte) {
	body := rapid.Custom(func(rt *rapid.T) []byte {
		n := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(zkproxy.Chunk-10, 3*zkproxy.Chunk)).Draw(rt, "length")
		opcode := rapid.SampledFrom([]proto.Opcode{proto.OpCreate, proto.OpMulti, proto.OpPing, -1, 0}).Draw(rt, "opcode")
		e := proto.NewEncoder()
		e.RequestHead(rapid.Int32Range(-4, 4).Draw(rt, "xid"), opcode)
		junk := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(rt, "body")
		p := append(e.Body(), junk...)
		return append(p, make([]byte, max(0, n-len(p)))...)[:n]
	})
	stream := framed(make([]byte, 45))
	if rapid.Bool().Draw(rt, "no handshake") {
		stream = []byte("conf")
	}
	for _, b := range rapid.SliceOfN(body, 0, 10).Draw(rt, "frames") {
		stream = append(stream, framed(b)...)
	}
	switch rapid.IntRange(0, 2).Draw(rt, "tail") {
	case 0:
		return stream, nil
	case 1: // a negative length: no frames from here on
		return append(stream, "\xff\xff\xff\xffjunk"...), nil
	}
	return stream, []byte("\x40\x00\x00\x00begun")[:rapid.IntRange(1, 9).Draw(rt, "part")]
}

// framed returns a frame with the body.
func framed(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// writeIn writes b in pieces of the given lengths, over and over.
func writeIn(w io.Writer, b []byte, lengths []int) error {
	for i := 0; len(b) > 0; i++ {
		n := len(b)
		if len(lengths) > 0 {
			n = min(n, lengths[i%len(lengths)])
		}
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func FuzzDecode(f *testing.F) {
	f.Add(createRequest(1, "/a", []byte("data"))[proto.LengthSize:])
	part := proto.NewEncoder()
	part.OpHead(proto.OpCreateTTL, false, -1)
	f.Add(request(1, proto.OpMulti, bare(append(part.Body(), createRequest(1, "/a", nil)[proto.LengthSize+8:]...)))[proto.LengthSize:])
	event := proto.NewEncoder()
	event.ReplyHead(proto.XidEvent, -1, proto.CodeOK)
	event.Int32(1)
	event.Int32(3)
	event.String("/a")
	f.Add(event.Body())
	f.Add(hello().Frame()[proto.LengthSize:])
	f.Fuzz(func(t *testing.T, body []byte) {
		frame, _ := zkserver.FrameOf(1, body)
		total := len(frame.Path)
		for _, part := range frame.Parts {
			total += len(part.Path)
		}
		if total > len(body) || len(frame.Parts) > len(body) {
			t.Errorf("%d bytes of paths in %d parts from a frame of %d", total, len(frame.Parts), len(body))
		}
		zkproxy.DecodeConnect(body)
		if s, _ := zkproxy.DecodeAnswer(body); len(s.Password) > len(body) {
			t.Errorf("a password of %d bytes from a frame of %d", len(s.Password), len(body))
		}
		if event, _ := zkproxy.DecodeReply(body, 1); len(event.Path) > len(body) {
			t.Errorf("a path of %d bytes from a frame of %d", len(event.Path), len(body))
		}
	})
}
