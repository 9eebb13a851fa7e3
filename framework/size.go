package framework

import (
	"fmt"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/proto"
)

// Bytes of a request in ZooKeeper's encoding, without paths, data and ACLs.
const (
	headSize    = proto.RequestHeadSize                 // number and opcode of a request
	readSize    = headSize + proto.LengthSize + 1       // path, watch flag
	deleteSize  = headSize + proto.LengthSize + 4       // path, version
	setSize     = headSize + 2*proto.LengthSize + 4     // path, data, version
	createSize  = headSize + 3*proto.LengthSize + 4 + 8 // path, data, ACL, flags, TTL
	authSize    = headSize + 4 + 2*proto.LengthSize     // type, scheme, credential
	multiOpSize = proto.OpHeadSize                      // per operation, and at the end
)

// checkSize returns an error if a request of that many bytes must not be sent. The server would
// close the connection, with all requests that are in flight on it.
func (c *core) checkSize(bytes int) error {
	if bytes > c.cfg.maxRequest {
		return fmt.Errorf("%w: a request of %d bytes, must be at most %d", ErrTooLarge, bytes, c.cfg.maxRequest)
	}
	return nil
}

func aclSize(acl []acl.Entry) int {
	size := 0
	for _, entry := range acl {
		size += 4 + 2*proto.LengthSize + len(entry.Scheme) + len(entry.ID)
	}
	return size
}
