package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework/internal/session"
	"github.com/docent-go/docent/internal/proto"
)

// An Identity is an identity of the client at a server, as an ACL names it.
type Identity struct {
	Scheme string // as in "ip", "digest", "sasl", "x509"
	ID     string // the user; of scheme "digest" without the hash of the password
}

// WhoAmI returns the identities that the present connection has at its server: the client's
// address, and one for each credential that was accepted. It is retried by the client's policy
// until ctx ends. Servers older than ZooKeeper 3.7 do not know the request: the error wraps
// [ErrUnsupported]. Finding that out costs the connection, so the client asks such a server once in
// ten minutes. Other errors are the errors of every operation.
func (c *Client) WhoAmI(ctx context.Context) ([]Identity, error) {
	ids, err := do(ctx, c.core, request{op: "whoAmI", session: c.session, repeat: repeatable, reads: true}, func(ctx context.Context, s *session.Session) ([]Identity, error) {
		body, err := ask(ctx, s, proto.OpWhoAmI, nil)
		if err != nil {
			return nil, err
		}
		return identities(body)
	})
	return ids, callError(ctx, "whoAmI", "", err)
}

func identities(body []byte) ([]Identity, error) {
	d := proto.NewDecoder(body)
	ids := make([]Identity, d.Count(2*proto.LengthSize))
	for i := range ids {
		ids[i] = Identity{Scheme: d.Path(), ID: d.Path()}
	}
	if d.End() != nil {
		return nil, errMalformed
	}
	return ids, nil
}

// errMalformed is returned for a reply that does not follow the protocol.
var errMalformed = fmt.Errorf("%w: %w", ErrServer, errors.New("malformed answer"))
