package zkproxy

import (
	"encoding/binary"
	"net"
	"slices"
)

// refusedRequest returns the frame that the server gets in place of a request which is to
// be refused: a read that needs no permission. Its reply has the server's zxid and comes
// behind the replies to the requests before.
func refusedRequest(xid int32) []byte {
	frame := binary.BigEndian.AppendUint32(nil, 14)
	frame = binary.BigEndian.AppendUint32(frame, uint32(xid))
	frame = binary.BigEndian.AppendUint32(frame, opcodeExists)
	frame = binary.BigEndian.AppendUint32(frame, 1)
	return append(frame, '/', 0) // the path, and no watch
}

// refuse delivers the refusal in place of the reply to a refusedRequest.
func (f *flow) refuse(p parcel) error {
	code := p.strike.Code()
	reply := slices.Clone(p.bytes[:lengthSize+replyHeader])
	binary.BigEndian.PutUint32(reply, replyHeader)
	header := reply[lengthSize:]
	last := int64(binary.BigEndian.Uint64(header[4:]))
	binary.BigEndian.PutUint64(header[4:], uint64(code.Zxid(last)))
	binary.BigEndian.PutUint32(header[12:], uint32(code))
	p.strike.Land()
	if err := f.write(reply); err != nil || !code.Closes() {
		return err
	}
	f.link.cut()
	return net.ErrClosed
}
