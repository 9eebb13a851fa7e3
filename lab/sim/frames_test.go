package sim_test

import (
	"encoding/binary"
	"net"

	"github.com/docent-go/docent/internal/proto"
)

// A frames connection changes what is received, one frame at a time.
type frames struct {
	net.Conn
	change func(body []byte) []byte // returns what to read in the place of the frame's body; nil is no frame
	unread []byte                   // used by Read alone
}

func (c *frames) Read(p []byte) (int, error) {
	for len(c.unread) == 0 {
		body, err := proto.ReadFrame(c.Conn, 1<<20)
		if err != nil {
			return 0, err
		}
		if body = c.change(body); body != nil {
			c.unread = append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
		}
	}
	n := copy(p, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

// request returns the number and the operation of a request, and the decoder of its fields. The client
// writes a frame at once.
func request(frame []byte) (xid int32, op proto.Opcode, d proto.Decoder) {
	d = proto.NewDecoder(frame[min(proto.LengthSize, len(frame)):])
	return d.Int32(), proto.Opcode(d.Int32()), d
}
