package tap_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/internal/proto"
)

const (
	opCreate  = 1
	opCreate2 = 15

	statLength = 68
	replyHead  = 16
)

// create sends a create of path with the flags, and returns its number and the opcode
// that arrived.
func (p *peer) create(path string, flags int32) (xid, opcode int32) {
	p.t.Helper()
	p.xid++
	b := binary.BigEndian.AppendUint32(nil, uint32(p.xid))
	b = binary.BigEndian.AppendUint32(b, opCreate)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(path))), path...)
	b = binary.BigEndian.AppendUint32(b, 0) // no data
	b = binary.BigEndian.AppendUint32(b, 0) // no ACL
	sent := p.send(binary.BigEndian.AppendUint32(b, uint32(flags)))
	if got := sent[8 : len(sent)-4]; !bytes.Equal(got, b[8:]) || len(sent) != len(b)+4 {
		p.t.Errorf("%x was sent, want nothing changed but the opcode", sent)
	}
	return p.xid, int32(binary.BigEndian.Uint32(sent[4:]))
}

// createdReply is the answer to a create: a path and a Stat of which every field has
// another value, czxid the first.
func createdReply(xid, code int32, path string, czxid byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(xid))
	b = binary.BigEndian.AppendUint64(b, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(path))), path...)
	for i, n := range []int{8, 8, 8, 8, 4, 4, 4, 8, 4, 4, 8} {
		b = append(b, make([]byte, n-1)...)
		b = append(b, czxid+byte(i))
	}
	return b
}

// pieces passes a frame from the server to the client in pieces of n bytes.
func (p *peer) pieces(body []byte, n int) {
	p.t.Helper()
	frame := framed(body)
	go func() {
		for rest := frame; len(rest) > 0; rest = rest[min(n, len(rest)):] {
			_, _ = p.server.Write(rest[:min(n, len(rest))]) // an error is the reader's
		}
	}()
	if _, err := io.ReadFull(p.client, make([]byte, len(frame))); err != nil {
		p.t.Fatal(err)
	}
}

func TestTheStatOfACreateIsKeptForWhoWantsIt(t *testing.T) {
	long := "/" + strings.Repeat("a", maxReply-replyHead-4-statLength-1) // its reply is as long as may be
	for name, tc := range map[string]struct {
		path string
		code int32
		want bool
	}{
		"one that went well":         {"/a-0000000007", 0, true},
		"the longest":                {long, 0, true},
		"one that was refused isn't": {"/a-0000000007", -110, false},
	} {
		for _, n := range []int{1, 3, 4, 17, 20, 21, 1 << 20} {
			if n < 17 && len(tc.path) > 100 {
				continue // thousands of pieces
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPeer(t)
					f := p.tap.FollowCreate("/a-")
					f.Begin()
					first := p.request(opSetData)
					xid, opcode := p.create("/a-", 3)
					select {
					case <-f.Sent():
					default:
						t.Error("it has left, and nobody is told")
					}
					if opcode != opCreate2 {
						t.Errorf("opcode %d was sent, want that whose reply has a Stat", opcode)
					}
					p.pieces(createdReply(first, 0, tc.path, 100), n) // of no create: its content is not wanted
					p.pieces(createdReply(xid, tc.code, tc.path, 1), n)
					st, ok := f.End()
					want := proto.Stat{Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, Cversion: 6, Aversion: 7, EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11}
					if ok != tc.want || ok && st != want {
						t.Errorf("in pieces of %d: %+v, %v, want %+v, %v", n, st, ok, want, tc.want)
					}
					xid, _ = p.create("/a-", 3)
					p.pieces(createdReply(xid, 0, "/a-0000000008", 1), n) // no caller follows it
				})
			})
		}
	}
}

func TestAContainersCreateStaysOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		f := p.tap.FollowCreate("/c")
		f.Begin()
		xid, opcode := p.create("/c", 4)
		if opcode != 19 {
			t.Errorf("opcode %d was sent", opcode)
		}
		p.reply(createdReply(xid, 0, "/c", 1))
		if st, ok := f.End(); !ok || st.Czxid != 1 {
			t.Errorf("%+v, %v", st, ok)
		}
	})
}
