package zktest

import (
	"errors"
	"fmt"
	"io"

	"github.com/docent-go/docent/internal/proto"
)

// maxFrame bounds a frame that is read here; a handshake's answer has 37 bytes.
const maxFrame = 1 << 20

// parseAnswer reads the body of a server's handshake.
func parseAnswer(body []byte) (proto.ConnectReply, error) {
	d := proto.NewDecoder(body)
	reply := d.ConnectReply()
	if d.Err() != nil {
		return proto.ConnectReply{}, fmt.Errorf("zktest: a handshake of %d bytes: %w", len(body), d.Err())
	}
	return reply, nil
}

// closeSessionXid is the xid of the request that ends a session.
const closeSessionXid = 1

func closeSessionRequest() []byte {
	return proto.RequestFrame(closeSessionXid, proto.OpCloseSession, nil)
}

// replyXid returns which request a reply answers; watch events and pings have
// negative numbers.
func replyXid(body []byte) (int32, error) {
	d := proto.NewDecoder(body)
	head := d.ReplyHead()
	if d.Err() != nil {
		return 0, fmt.Errorf("zktest: a reply of %d bytes: %w", len(body), d.Err())
	}
	return head.Xid, nil
}

func readFrame(r io.Reader) ([]byte, error) {
	body, err := proto.ReadFrame(r, maxFrame)
	if errors.Is(err, proto.ErrMalformed) {
		return nil, fmt.Errorf("zktest: %w: must have at most %d", err, maxFrame)
	}
	return body, err
}
