package wire

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
)

// ErrRefused is returned when an exchange of SASL failed: the server refused the client, or the
// client the server.
var ErrRefused = errors.New("SASL failed")

// errMechanism is returned if the server refused an empty token. With that a client only asks for a
// mechanism: it has no part of a credential.
var errMechanism = errors.New("the server does not offer the mechanism; it refuses DIGEST-MD5 in FIPS mode, " +
	"which is the default from ZooKeeper 3.9 on, and offers it with -Dzookeeper.fips-mode=false")

// An Exchange is the client's side of one exchange by a SASL mechanism.
type Exchange interface {
	// Next takes the server's challenge, nil before the first, and returns the response. If done is
	// true, the mechanism is complete once the response is sent and accepted; a nil response is not
	// sent.
	Next(challenge []byte) (response []byte, done bool, err error)
}

const (
	// maxSASLRounds bounds an exchange with a server that never ends it.
	maxSASLRounds = 16
	// maxSASLReply is more than the length of a server's tokens.
	maxSASLReply = 64 << 10
)

// authenticate carries out an exchange of SASL. A server without SASL replies with neither an error
// nor a token. So the exchange has succeeded only when the mechanism itself says that it is
// complete. If e does not return when ctx ends, authenticate does. If e panics, the error does not wrap [ErrRefused].
func authenticate(ctx context.Context, server io.ReadWriter, e Exchange) error {
	var challenge []byte
	for round := range int32(maxSASLRounds) {
		response, done, err := next(ctx, e, challenge)
		if err != nil {
			return err
		}
		if done && response == nil {
			return nil
		}
		if challenge, err = saslRound(server, firstXid-round, response); err != nil {
			return err
		}
		if done {
			return nil
		}
		if challenge == nil {
			return fmt.Errorf("%w: the server answers without a token: it has no SASL, or another mechanism", ErrRefused)
		}
	}
	return fmt.Errorf("%w: no end after %d rounds", ErrRefused, maxSASLRounds)
}

// next calls e.Next on another goroutine: it is a user's, and the caller may be the wire client's reader.
func next(ctx context.Context, e Exchange, challenge []byte) (response []byte, done bool, err error) {
	type result struct {
		response []byte
		done     bool
		err      error
	}
	r, err := usercall.Bounded(ctx, new(usercall.Calls), func() (r result, _ error) {
		r.response, r.done, r.err = e.Next(challenge)
		return r, nil
	}, nil)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("SASL: %w", err)
	case r.err != nil:
		return nil, false, fmt.Errorf("%w: %w", ErrRefused, r.err)
	}
	return r.response, r.done, nil
}

// saslRound sends a token and returns the server's token, nil for none.
func saslRound(server io.ReadWriter, xid int32, token []byte) ([]byte, error) {
	head, body, err := ask(server, xid, proto.OpSASL, proto.AppendString(nil, string(token)), maxSASLReply)
	if err != nil {
		return nil, fmt.Errorf("SASL: %w", err)
	}
	if head.Code != proto.CodeOK && len(token) == 0 {
		return nil, fmt.Errorf("%w: %w (code %d)", ErrRefused, errMechanism, head.Code)
	}
	if head.Code != proto.CodeOK {
		return nil, fmt.Errorf("%w: refused by the server (code %d)", ErrRefused, head.Code)
	}
	d := proto.NewDecoder(body)
	return d.Bytes(), nil // null or cut short: nil
}
