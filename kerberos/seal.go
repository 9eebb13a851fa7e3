package kerberos

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"
)

// The flags of a sealed message (RFC 4121, 4.2.2).
const (
	flagEncrypted      = 1 << 1
	flagAcceptorSubkey = 1 << 2
)

// A seal protects messages from changes. It does not hide them.
type seal struct {
	key      types.EncryptionKey
	flags    byte
	sequence uint64 // of the message that the client sends
}

// wrap returns the message with its checksum.
func (s seal) wrap(message []byte) ([]byte, error) {
	kind, err := crypto.GetEtype(s.key.KeyType)
	if err != nil {
		return nil, err
	}
	token := gssapi.WrapToken{
		Flags:     s.flags,
		EC:        uint16(kind.GetHMACBitLength() / 8),
		SndSeqNum: s.sequence,
		Payload:   message,
	}
	if err := token.SetCheckSum(s.key, keyusage.GSSAPI_INITIATOR_SEAL); err != nil {
		return nil, err
	}
	return token.Marshal()
}

// open returns the server's message once its checksum is verified.
func (s seal) open(sealed []byte) ([]byte, error) {
	var token gssapi.WrapToken
	if err := token.Unmarshal(unrotated(sealed), true); err != nil {
		return nil, err
	}
	if token.Flags&flagEncrypted != 0 {
		return nil, errors.New("the server's message is encrypted: must only be signed")
	}
	if token.Flags&flagAcceptorSubkey != s.flags {
		return nil, errors.New("the server's message is signed by another key")
	}
	if ok, _ := token.Verify(s.key, keyusage.GSSAPI_ACCEPTOR_SEAL); !ok {
		return nil, errors.New("the server's message has a wrong checksum")
	}
	return token.Payload, nil
}

// unrotated undoes the rotation of a sealed message (RFC 4121, 4.2.5).
func unrotated(sealed []byte) []byte {
	if len(sealed) <= gssapi.HdrLen {
		return sealed
	}
	head, body := sealed[:gssapi.HdrLen], sealed[gssapi.HdrLen:]
	n := int(binary.BigEndian.Uint16(head[6:8])) % len(body)
	return slices.Concat(head, body[n:], body[:n])
}
