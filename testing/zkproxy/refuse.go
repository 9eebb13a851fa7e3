package zkproxy

import (
	"net"

	"github.com/docent-go/docent/internal/proto"
)

// refusedRequest returns the frame that the server gets in place of a request which is to
// be refused: a read that needs no permission. Its reply has the server's zxid and comes
// behind the replies to the requests before.
func refusedRequest(xid int32) []byte {
	body := append(proto.AppendString(nil, "/"), 0) // no watch
	return proto.RequestFrame(xid, proto.OpExists, body)
}

// refuse delivers the refusal in place of the reply to a refusedRequest.
func (f *flow) refuse(p parcel) error {
	code := p.injection.Code()
	d := proto.NewDecoder(p.body())
	head := d.ReplyHead()
	reply := proto.NewEncoder()
	reply.ReplyHead(head.Xid, code.Zxid(head.Zxid), proto.Code(code))
	p.injection.Commit()
	if err := f.write(reply.Frame()); err != nil || !code.Closes() {
		return err
	}
	f.link.cut()
	return net.ErrClosed
}
