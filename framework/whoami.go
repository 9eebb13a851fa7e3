package framework

import (
	"context"
	"errors"
	"fmt"

	"github.com/docent-go/docent/framework/internal/tap"
)

// An Identity is whom a server takes a client for, as an ACL names it.
type Identity struct {
	Scheme string // as in "ip", "digest", "sasl", "x509"
	ID     string // the user; of scheme "digest" without the hash of the password
}

// WhoAmI returns the identities that the present connection has at its server: the
// client's address, and one for each credential that was accepted. It is retried by the
// client's policy until ctx ends. Servers older than ZooKeeper 3.7 do not know it:
// the error wraps [ErrUnsupported]. To find that out costs the connection, so such a
// server is asked once in ten minutes.
func (c *Client) WhoAmI(ctx context.Context) ([]Identity, error) {
	ids, err := do(ctx, c.core, request{op: "whoAmI", session: c.session, repeat: repeatable, reads: true}, func(ctx context.Context, s *session) ([]Identity, error) {
		body, err := s.ask(ctx, opWhoAmI, nil)
		if err != nil {
			return nil, err
		}
		return identities(body)
	})
	return ids, callError(ctx, "whoAmI", "", err)
}

func identities(body []byte) ([]Identity, error) {
	pairs, ok := tap.Strings(body, 2)
	if !ok {
		return nil, errMalformed
	}
	ids := make([]Identity, len(pairs)/2)
	for i := range ids {
		ids[i] = Identity{Scheme: pairs[2*i], ID: pairs[2*i+1]}
	}
	return ids, nil
}

// errMalformed is for an answer that is not what the protocol says.
var errMalformed = fmt.Errorf("%w: %w", ErrServer, errors.New("malformed answer"))
