package kerberos_test

import (
	"bytes"
	"crypto/rand"
	"encoding/asn1"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	krbasn1 "github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/docent-go/docent/internal/must"
)

// oid is Kerberos 5's, encoded.
const oid = "\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"

// An acceptor is a server that a test tells how to answer.
type acceptor struct {
	key    types.EncryptionKey // of the session
	subkey types.EncryptionKey // empty for none

	proof    types.EncryptionKey // what the proof is encrypted by
	late     time.Duration       // by which the time in the proof differs
	offer    []byte
	flags    byte
	rotation int
	broken   bool // the offer's checksum
}

func newKey(t testing.TB, id int32) types.EncryptionKey {
	t.Helper()
	sizes := map[int32]int{
		etypeID.AES128_CTS_HMAC_SHA1_96: 16, etypeID.AES256_CTS_HMAC_SHA1_96: 32,
		etypeID.AES128_CTS_HMAC_SHA256_128: 16, etypeID.AES256_CTS_HMAC_SHA384_192: 32,
	}
	key := types.EncryptionKey{KeyType: id, KeyValue: make([]byte, sizes[id])}
	_, _ = rand.Read(key.KeyValue) // never fails
	return key
}

// asked returns the client's authenticator.
func (a *acceptor) asked(t testing.TB, token []byte) types.Authenticator {
	t.Helper()
	var outer asn1.RawValue
	must.Get(asn1.Unmarshal(token, &outer))(t)
	body, ok := bytes.CutPrefix(outer.Bytes, []byte(oid+"\x01\x00"))
	if !ok {
		t.Fatalf("token % x", token)
	}
	var request messages.APReq
	must.OK(t, request.Unmarshal(body))
	if !types.IsFlagSet(&request.APOptions, flags.APOptionMutualRequired) {
		t.Error("the client wants no proof of the server")
	}
	must.OK(t, request.DecryptAuthenticator(a.key))
	return request.Authenticator
}

// reply returns the server's proof.
func (a *acceptor) reply(t testing.TB, asked types.Authenticator) []byte {
	t.Helper()
	part := messages.EncAPRepPart{CTime: asked.CTime.Add(a.late), Cusec: asked.Cusec, Subkey: a.subkey, SequenceNumber: 7}
	plain := marshalled(t, part, 27)
	sealed := must.Get(crypto.GetEncryptedData(plain, a.proof, keyusage.AP_REP_ENCPART, 0))(t)
	return token("\x02\x00", marshalled(t, messages.APRep{PVNO: 5, MsgType: 15, EncPart: sealed}, 15))
}

func token(kind string, body []byte) []byte {
	return asn1tools.AddASNAppTag(append([]byte(oid+kind), body...), 0)
}

func marshalled(t testing.TB, value any, tag int) []byte {
	t.Helper()
	b := must.Get(krbasn1.Marshal(value))(t)
	return asn1tools.AddASNAppTag(b, tag)
}

// sealing returns the key that protects messages.
func (a *acceptor) sealing() types.EncryptionKey {
	if len(a.subkey.KeyValue) > 0 {
		return a.subkey
	}
	return a.key
}

// layers returns the server's offer of security layers.
func (a *acceptor) layers(t testing.TB) []byte {
	t.Helper()
	kind := must.Get(crypto.GetEtype(a.sealing().KeyType))(t)
	sealed := gssapi.WrapToken{Flags: 1 | a.flags, EC: uint16(kind.GetHMACBitLength() / 8), SndSeqNum: 7, Payload: a.offer}
	must.OK(t, sealed.SetCheckSum(a.sealing(), keyusage.GSSAPI_ACCEPTOR_SEAL))
	if a.broken {
		sealed.CheckSum[0] ^= 1
	}
	message := must.Get(sealed.Marshal())(t)
	head, body := message[:gssapi.HdrLen], message[gssapi.HdrLen:]
	binary.BigEndian.PutUint16(head[6:], uint16(a.rotation))
	n := len(body) - a.rotation%len(body)
	return slices.Concat(head, body[n:], body[:n])
}

// chosen returns the client's choice, once its checksum and number are verified.
func (a *acceptor) chosen(t testing.TB, asked types.Authenticator, message []byte) []byte {
	t.Helper()
	var sealed gssapi.WrapToken
	must.OK(t, sealed.Unmarshal(message, false))
	if ok, err := sealed.Verify(a.sealing(), keyusage.GSSAPI_INITIATOR_SEAL); !ok {
		t.Error(err)
	}
	if sealed.SndSeqNum != uint64(asked.SeqNumber) {
		t.Errorf("message number %d, want %d", sealed.SndSeqNum, asked.SeqNumber)
	}
	return sealed.Payload
}
