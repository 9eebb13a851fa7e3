package tap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Reasons of [Tap.Refusal].
var (
	// ErrCredential means that the server refused a credential, or a request for want of one.
	ErrCredential = errors.New("the server refused a credential")
	// ErrTrial means that the server refused a credential that was tried. It then closes the
	// connection; the next one does without that credential.
	ErrTrial = errors.New("the server refused a credential that was tried, and closes the connection")
)

// A Credential authenticates a connection.
type Credential struct {
	Scheme string
	Secret []byte
	// Answered is called with the server's answer, from a goroutine that must not be blocked.
	// It is nil unless the credential is on trial: see [ErrTrial].
	Answered func(accepted bool)
}

// xidAuth is the xid that ZooKeeper's own client gives credentials.
const xidAuth = -4

// maxAuthReply is room for a reply without a body.
const maxAuthReply = 1 << 10

// UseCredentials makes the connection present the credentials, in that order, before the wire
// client gets the answer to its handshake, and within the handshake's deadline. So no request
// precedes them. UseCredentials has to be called before the connection is used.
func (c *Conn) UseCredentials(credentials []Credential) { c.credentials = credentials }

// CredentialBody returns the body of a request that presents a credential.
func CredentialBody(scheme string, secret []byte) []byte {
	b := make([]byte, 4, 4+2*lengthSize+len(scheme)+len(secret)) // a type that nobody uses
	return AppendString(AppendString(b, scheme), string(secret))
}

// presentAll presents the credentials of the connection until the server refuses one.
func (c *Conn) presentAll() error {
	for _, credential := range c.credentials {
		accepted, err := present(c.raw(), credential)
		if err != nil {
			return err
		}
		if credential.Answered != nil {
			credential.Answered(accepted)
		}
		if !accepted {
			c.refusedBy(credential.Answered != nil)
			return nil // the wire client has to learn of the session
		}
	}
	return nil
}

// refusedBy takes note that the server refused a credential.
func (c *Conn) refusedBy(trial bool) {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.refusal = ErrCredential
	if trial {
		c.refusal = ErrTrial
	}
}

// raw returns the stream below the frames that the wire client sees.
func (c *Conn) raw() io.ReadWriter {
	return struct {
		io.Reader
		io.Writer
	}{c.reader.socket, c.Conn}
}

// present sends a credential and reports whether the server accepted it.
func present(server io.ReadWriter, credential Credential) (accepted bool, err error) {
	body := CredentialBody(credential.Scheme, credential.Secret)
	xid := int32(xidAuth)
	frame := binary.BigEndian.AppendUint32(nil, uint32(requestHead+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(xid))
	frame = binary.BigEndian.AppendUint32(frame, opSetAuth)
	if _, err := server.Write(append(frame, body...)); err != nil {
		return false, fmt.Errorf("credential: %w", err)
	}
	reply, err := readFrame(server, maxAuthReply)
	switch {
	case err != nil:
		return false, fmt.Errorf("credential: %w", err)
	case len(reply) < replyHead || int32At(reply, 0) != xid:
		return false, fmt.Errorf("%w: a reply of %d bytes to a credential", ErrHandshake, len(reply))
	}
	return int32At(reply, 12) == 0, nil
}
