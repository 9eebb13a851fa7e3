package kerberos

import (
	"bytes"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// oid is the object identifier of Kerberos 5, encoded.
const oid = "\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"

// The kinds of tokens that set up a context.
const (
	kindRequest = "\x01\x00"
	kindReply   = "\x02\x00"
	kindError   = "\x03\x00"
)

// noLayer is the bit of the security layer that does nothing, in the server's offer and in the
// client's choice.
const noLayer = 1

// An exchange is the client's side of one authentication: its request with a ticket, the
// server's proof, and the choice of no security layer.
type exchange struct {
	ticket *ticket
	asked  types.Authenticator
	seal   seal
	next   func(x *exchange, challenge []byte) (token []byte, done bool, err error)
}

func newExchange(t *ticket) *exchange {
	return &exchange{ticket: t, next: (*exchange).request}
}

// Next is part of [framework.Exchange].
func (x *exchange) Next(challenge []byte) (token []byte, done bool, err error) {
	defer guard(&err)
	return x.next(x, challenge)
}

// request returns the ticket, and the question that the server proves itself by.
func (x *exchange) request([]byte) ([]byte, bool, error) {
	x.next = (*exchange).verify
	var err error
	if x.asked, err = types.NewAuthenticator(x.ticket.realm, x.ticket.client); err != nil {
		return nil, false, err
	}
	x.asked.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: contextFlags()}
	request, err := messages.NewAPReq(x.ticket.body, x.ticket.key, x.asked)
	if err != nil {
		return nil, false, err
	}
	types.SetFlag(&request.APOptions, flags.APOptionMutualRequired)
	body, err := request.Marshal()
	if err != nil {
		return nil, false, err
	}
	return asn1tools.AddASNAppTag(append([]byte(oid+kindRequest), body...), 0), false, nil
}

// contextFlags returns what the client wants of the context, in the form of a checksum (RFC 4121,
// 4.1.1): no channel bindings, a proof by the server, and integrity.
func contextFlags() []byte {
	sum := make([]byte, 24)
	binary.LittleEndian.PutUint32(sum, 16)
	binary.LittleEndian.PutUint32(sum[20:], gssapi.ContextFlagMutual|gssapi.ContextFlagInteg)
	return sum
}

// verify takes the server's proof that it could read the ticket.
func (x *exchange) verify(challenge []byte) ([]byte, bool, error) {
	body, err := reply(challenge)
	if err != nil {
		return nil, false, err
	}
	var answer messages.APRep
	if err := answer.Unmarshal(body); err != nil {
		return nil, false, err
	}
	plain, err := crypto.DecryptEncPart(answer.EncPart, x.ticket.key, keyusage.AP_REP_ENCPART)
	if err != nil {
		return nil, false, fmt.Errorf("the server did not prove its identity: %w", err)
	}
	var part messages.EncAPRepPart
	if err := part.Unmarshal(plain); err != nil {
		return nil, false, err
	}
	if part.CTime.Unix() != x.asked.CTime.Unix() || part.Cusec != x.asked.Cusec {
		return nil, false, errors.New(
			"the server did not prove its identity: it answers another request")
	}
	x.seal = seal{key: x.ticket.key, sequence: uint64(x.asked.SeqNumber)}
	if len(part.Subkey.KeyValue) > 0 {
		x.seal.key, x.seal.flags = part.Subkey, flagAcceptorSubkey
	}
	x.next = (*exchange).choose
	return []byte{}, false, nil
}

// reply returns the message in a server's token.
func reply(token []byte) ([]byte, error) {
	var outer asn1.RawValue
	if rest, err := asn1.Unmarshal(token, &outer); err != nil || len(rest) > 0 {
		return nil, errors.New("the server's token is malformed")
	}
	inner, ok := bytes.CutPrefix(outer.Bytes, []byte(oid))
	if !ok || outer.Class != asn1.ClassApplication || outer.Tag != 0 || len(inner) < len(kindReply) {
		return nil, errors.New("the server's token is none of Kerberos")
	}
	kind, body := string(inner[:len(kindReply)]), inner[len(kindReply):]
	switch kind {
	case kindReply:
		return body, nil
	case kindError:
		var refused messages.KRBError
		if err := refused.Unmarshal(body); err != nil {
			return nil, err
		}
		return nil, refused
	default:
		return nil, fmt.Errorf("the server's token is of kind %x", kind)
	}
}

// choose takes the server's offer of security layers and chooses none. It names no identity but the
// ticket's.
func (x *exchange) choose(challenge []byte) ([]byte, bool, error) {
	x.next = (*exchange).over
	offer, err := x.seal.open(challenge)
	if err != nil {
		return nil, false, err
	}
	if len(offer) != 4 || offer[0]&noLayer == 0 {
		return nil, false, errors.New("the server insists on a security layer")
	}
	token, err := x.seal.wrap([]byte{noLayer, 0, 0, 0})
	return token, err == nil, err
}

func (x *exchange) over([]byte) ([]byte, bool, error) {
	return nil, false, errors.New("the exchange is over")
}
