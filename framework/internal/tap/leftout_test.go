package tap_test

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/docent-go/docent/framework/internal/tap"
)

// A server replies in order, so a reply to any later request shows that it has left one out. Pings
// alone would not do: a wire client to which a server has granted days of session sends none.
func TestAReplyShowsThatAnEarlierRequestWasLeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		opcode int32
		age    time.Duration // of the earlier request
		want   error
	}{
		"a ping":            {opPing, timeout + time.Second, tap.ErrProtocol},
		"a read":            {opExists, timeout + time.Second, tap.ErrProtocol},
		"a write":           {opSetData, timeout + time.Second, tap.ErrProtocol},
		"a read, but early": {opExists, timeout - time.Second, nil},
	} {
		runSynctest(t, name, func(t *testing.T) {
			p := newPeer(t)
			p.request(opExists) // without a reply
			<-time.After(tc.age)
			xid := p.request(tc.opcode)
			b := binary.BigEndian.AppendUint32(nil, uint32(xid))
			b = append(b, make([]byte, 12)...)
			if tc.opcode != opPing {
				b = append(b, make([]byte, statLength)...)
			}
			go func() {
				_, _ = p.server.Write(framed(b)) // an error is the client's
				_ = p.server.Close()
			}()
			if _, err := io.ReadAll(p.client); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}
