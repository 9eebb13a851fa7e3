package wire

import (
	"errors"
	"fmt"
	"io"

	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/proto"
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

// maxAuthReply is more than the length of a reply without a body.
const maxAuthReply = 1 << 10

// CredentialBody returns the body of a request that presents a credential.
func CredentialBody(scheme string, secret []byte) []byte {
	b := make([]byte, 4, 4+2*proto.LengthSize+len(scheme)+len(secret)) // the type is unused
	return proto.AppendString(proto.AppendString(b, scheme), string(secret))
}

// presentAll presents credentials until the server refuses one.
func presentAll(server io.ReadWriter, credentials []Credential) error {
	for _, credential := range credentials {
		body := CredentialBody(credential.Scheme, credential.Secret)
		head, _, err := ask(server, proto.XidAuth, proto.OpAuth, body, maxAuthReply)
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
