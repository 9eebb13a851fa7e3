package zkserver

import (
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/testing/fault"
)

// refuses reports whether a fault rule has the front end refuse the request by itself.
func (c *conn) refuses() bool {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return c.injection != nil && c.injection.Action() == fault.Refuse
}

// refuse answers a request that the leader doesn't see, behind the answers to those
// before, and reports whether the connection goes on.
func (c *conn) refuse(r *request) bool {
	if !c.settled() {
		return false
	}
	defer c.server.mu.Unlock()
	refusal := c.injection.Code()
	c.reply(errorReply(r.xid, refusal.Zxid(c.front.view().zxid), proto.Code(refusal)))
	if refusal.Closes() {
		c.finish()
	}
	return !refusal.Closes()
}
