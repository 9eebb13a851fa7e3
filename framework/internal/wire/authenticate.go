package wire

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/usercall"
)

// Why a server refuses a connection: the errors of [Wire.Connect], and Refusals of a [Status].
var (
	// ErrCredential means that the server refused a credential, or a request that requires one.
	ErrCredential = errors.New("the server refused a credential")
	// ErrTrial means that the server refused a credential that the connection had not presented in its
	// handshake. The server then closes the connection; the next connection omits that credential.
	ErrTrial = errors.New("the server refused a credential that was tried, and closes the connection")
)

// A RefusedSchemeError is an [ErrCredential] that names the credential's scheme.
type RefusedSchemeError string

func (s RefusedSchemeError) Error() string {
	return fmt.Sprintf("that of the scheme %q", errtype.Shortened(string(s)))
}

// Is has errors.Is know it as an ErrCredential.
func (RefusedSchemeError) Is(target error) bool { return target == ErrCredential }

// A Credential authenticates a connection.
type Credential struct {
	Scheme string
	Secret []byte
}

// CredentialBody returns the body of a request that presents a credential.
func CredentialBody(scheme string, secret []byte) []byte {
	b := make([]byte, 4, 4+2*proto.LengthSize+len(scheme)+len(secret)) // the type is unused
	return proto.AppendString(proto.AppendString(b, scheme), string(secret))
}

// presentAll presents credentials until the server refuses one.
func presentAll(server io.ReadWriter, credentials []Credential) error {
	for _, credential := range credentials {
		body := CredentialBody(credential.Scheme, credential.Secret)
		head, _, err := ask(server, proto.XidAuth, proto.OpAuth, body, MaxSmall)
		if err != nil {
			return fmt.Errorf("credential: %w", err)
		}
		if head.Code != proto.CodeOK {
			return RefusedSchemeError(credential.Scheme)
		}
	}
	return nil
}

// ask sends a request on a connection without other requests, and returns the head and the body of
// the reply. Watch events are skipped.
func ask(
	server io.ReadWriter, xid int32, op proto.Opcode, body []byte, most int,
) (proto.ReplyHead, []byte, error) {
	if _, err := server.Write(proto.RequestFrame(xid, op, body)); err != nil {
		return proto.ReplyHead{}, nil, err
	}
	for {
		reply, err := proto.ReadFrame(server, most)
		if errors.Is(err, proto.ErrMalformed) {
			err = fmt.Errorf("%w: %w", ErrHandshake, err)
		}
		if err != nil {
			return proto.ReplyHead{}, nil, err
		}
		d := proto.NewDecoder(reply)
		switch head := d.ReplyHead(); {
		case d.Err() != nil || head.Xid != xid && head.Xid != proto.XidEvent:
			return head, nil, fmt.Errorf("%w: a reply of %d bytes to request %d", ErrHandshake, len(reply), xid)
		case head.Xid == xid:
			return head, d.Rest(), nil
		}
	}
}

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

// next calls e.Next on another goroutine: it is a user's, and may block.
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
