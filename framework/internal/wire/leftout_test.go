package wire_test

import (
	"errors"
	"testing"
	"time"

	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/internal/proto"
)

// A server replies in order, so a reply to any later request shows that it has left one out. Pings
// alone would not do: a wire client to which a server has granted days of session sends none.
func TestAReplyShowsThatAnEarlierRequestWasLeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		opcode proto.Opcode
		age    time.Duration // of the earlier request
		want   error
	}{
		"a ping":            {proto.OpPing, timeout + time.Second, wire.ErrProtocol},
		"a read":            {proto.OpExists, timeout + time.Second, wire.ErrProtocol},
		"a write":           {proto.OpSetData, timeout + time.Second, wire.ErrProtocol},
		"a read, but early": {proto.OpExists, timeout - time.Second, nil},
	} {
		runSynctest(t, name, func(t *testing.T) {
			p := newPeer(t)
			p.request(proto.OpExists) // without a reply
			for _, pause := range []time.Duration{timeout / 2, tc.age - timeout/2} {
				<-time.After(pause)
				p.reply(words(-1, 0, 1, 0, 4, 3, "/a")) // the server lives
			}
			p.respond(p.request(tc.opcode), 0)
			if err := p.wire.Status().Fault; !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}
