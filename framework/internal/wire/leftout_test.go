package wire_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/framework/internal/wire"
)

// A server replies in order, so a reply to any later request shows that it has left one out. Pings
// alone would not do: a wire client to which a server has granted days of session sends none.
func TestAReplyShowsThatAnEarlierRequestWasLeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		opcode int32
		age    time.Duration // of the earlier request
		want   error
	}{
		"a ping":            {opPing, timeout + time.Second, wire.ErrProtocol},
		"a read":            {opExists, timeout + time.Second, wire.ErrProtocol},
		"a write":           {opSetData, timeout + time.Second, wire.ErrProtocol},
		"a read, but early": {opExists, timeout - time.Second, nil},
	} {
		runSynctest(t, name, func(t *testing.T) {
			p := newPeer(t)
			p.request(opExists) // without a reply
			for _, pause := range []time.Duration{timeout / 2, tc.age - timeout/2} {
				<-time.After(pause)
				p.reply(words(-1, 0, 1, 0, 4, 3, "/a")) // the server lives
			}
			xid := p.request(tc.opcode)
			b := binary.BigEndian.AppendUint32(nil, uint32(xid))
			b = append(b, make([]byte, 12)...)
			if tc.opcode != opPing {
				b = append(b, make([]byte, statLength)...)
			}
			p.reply(b)
			if err := p.wire.Status().Fault; !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}
