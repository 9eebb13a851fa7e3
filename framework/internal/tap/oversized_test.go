package tap_test

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework/internal/tap"
)

// The reply's head is handed on with a code in place of the body, and what follows is read.
func TestAnOversizedReply(t *testing.T) {
	for name, tc := range map[string]struct {
		opcode, code, want int32
	}{
		"to a read":            {opExists, 0, tap.CodeTooLarge},
		"to a write":           {opSetData, 0, tap.CodeCut},
		"with a server's code": {opSetData, -103, -103},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t)
				first, second := p.request(tc.opcode), p.request(opExists)
				long := words(int(first), 0, 9, int(tc.code), make([]byte, 10*maxReply))
				next := words(int(second), 0, 1, -101)
				go func() {
					_, _ = p.server.Write(framed(long)) // an error is the reader's
					_, _ = p.server.Write(framed(next))
				}()
				want := append(framed(words(int(first), 0, 9, int(tc.want))), framed(next)...)
				got := make([]byte, len(want))
				if _, err := io.ReadFull(p.client, got); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%x, %v, want %x", got, err, want)
				}
				if _, waiting := p.tap.OldestUnanswered(); waiting {
					t.Error("everything is answered, and something is not")
				}
				if held := tap.Held(p.client); held > 1024 {
					t.Errorf("%d bytes are held", held)
				}
			})
		})
	}
}

// A server that does not stop can't hold up what waits: the reply is noted at its head.
func TestAnOversizedReplyIsNotedBeforeItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		xid := p.request(opExists)
		go p.server.Write(words(10*maxReply, int(xid), 0, 1, 0, 1))
		go p.client.Read(make([]byte, 4))
		synctest.Wait()
		if _, waiting := p.tap.OldestUnanswered(); waiting {
			t.Error("the reply is not noted")
		}
	})
}
