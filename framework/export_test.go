package framework

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/framework/internal/wire"
	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/internal/proto"
)

// Bounds of options and of the client's memory.
const (
	MinPacket          = minPacket
	MinSessionTimeout  = minSessionTimeout
	MaxPendingDeletes  = maxPendingDeletes
	DefaultLeaseMargin = defaultLeaseMargin
	DefaultMaxRequest  = defaultMaxRequest
	DefaultMaxReply    = defaultMaxReply
)

// SessionSecret returns what it takes to resume, and so to end, the client's
// session.
func SessionSecret(c *Client) (id int64, password []byte) {
	id, password = c.core.current().Secret()
	return id, password
}

// CloseConn closes the socket in use.
func CloseConn(c *Client) { c.core.current().Wire().CloseConn(errors.New("closed by a test")) }

// Repeat makes attempts by the client's policy, as an operation that may be repeated does.
func Repeat(ctx context.Context, c *Client, attempt func() error) error {
	_, err := do(ctx, c.core, request{op: "test"}, func(context.Context, *session.Session) (struct{}, error) {
		return struct{}{}, attempt()
	})
	return err
}

// PresentElsewhere is what a connection does first: it takes the credentials that the client has.
func PresentElsewhere(c *Client) { c.core.credentials.present() }

// Track makes the client follow a configuration at another path than ZooKeeper's.
func Track(c *Client, path string) { c.core.spawn(newTracker(c.core, path).loop) }

// ParseEnsembleConfig returns what a configuration says.
var ParseEnsembleConfig = parseEnsembleConfig

// EnsembleServers returns where a client goes to by a configuration.
func EnsembleServers(configuration string, secure bool, given ...string) []string {
	config, _ := parseEnsembleConfig(configuration) // what can be read counts
	return config.serversFor(secure, given)
}

// ParseConnectString returns what a connect string says.
func ParseConnectString(s string) (servers []string, chroot string, err error) {
	parsed, err := parseConnectString(s)
	return parsed.servers, parsed.chroot, err
}

// ServerError returns the error for a code in a server's reply.
func ServerError(code int32) error { return zkerr.OfCode(proto.Code(code)) }

// CreateUnchecked creates a znode that holds null at a path, without checking it.
func CreateUnchecked(c *Client, path string) error {
	body := proto.AppendString(nil, c.fullPath(path))
	body = binary.BigEndian.AppendUint32(body, 1<<32-1) // null
	body = binary.BigEndian.AppendUint32(body, 1)       // ACL entries
	body = binary.BigEndian.AppendUint32(body, uint32(acl.All))
	body = proto.AppendString(proto.AppendString(body, "world"), "anyone")
	body = binary.BigEndian.AppendUint32(body, 0) // flags
	answer, err := c.core.current().Wire().Ask(&wire.Request{Opcode: 1, Body: body, Limit: 1 << 20})
	return errors.Join(err, zkerr.OfCode(answer.Code))
}

// Attempt runs an attempt that does nothing, as all operations run. If it is not to be observed,
// it passes by the one place that reports to traces and metrics.
func Attempt(ctx context.Context, c *Client, observed bool) error {
	rq := request{op: "get", path: "/"}
	attempt := func(context.Context, *session.Session) (proto.Node, error) { return proto.Node{}, nil }
	var err error
	if observed {
		_, err = do(ctx, c.core, rq, attempt)
	} else {
		_, err = try(ctx, c.core, &rq, nil, attempt)
	}
	return err
}
