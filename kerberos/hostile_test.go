package kerberos_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	krbasn1 "github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/kerberos"
)

// wants returns a KDC's demand for a proof, with hints for how to make the key.
func wants(t *testing.T, hints []byte) []byte {
	t.Helper()
	demand := messages.NewKRBError(types.NewPrincipalName(2, "krbtgt/"+realmName), realmName, errorcode.KDC_ERR_PREAUTH_REQUIRED, "")
	demand.EData = hints
	reply := must.Get(demand.Marshal())(t)
	return framed(reply)
}

// info returns hints of one kind.
func info(t *testing.T, entries ...types.ETypeInfo2Entry) []byte {
	t.Helper()
	value := must.Get(krbasn1.Marshal(types.ETypeInfo2(entries)))(t)
	return must.Get(krbasn1.Marshal(types.PADataSequence{{PADataType: patype.PA_ETYPE_INFO2, PADataValue: value}}))(t)
}

// reply returns an unreadable reply to a login of alice, with an empty list of hints.
func reply(t *testing.T, realm string) []byte {
	t.Helper()
	sealed := types.EncryptedData{EType: etypeID.AES256_CTS_HMAC_SHA1_96, KVNO: 1, Cipher: []byte("sealed")}
	var hints types.PADataSequence
	must.OK(t, hints.Unmarshal(info(t)))
	message := messages.ASRep{KDCRepFields: messages.KDCRepFields{
		PVNO: 5, MsgType: 11, PAData: hints, CRealm: realm, CName: types.NewPrincipalName(1, "alice"), EncPart: sealed,
		Ticket: messages.Ticket{TktVNO: 5, Realm: realm, SName: types.NewPrincipalName(2, "krbtgt/"+realm), EncPart: sealed},
	}}
	frame := must.Get(message.Marshal())(t)
	return framed(frame)
}

func TestLogin_survives_a_hostile_KDC(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	hint := func(id int32, iterations string) types.ETypeInfo2Entry {
		return types.ETypeInfo2Entry{EType: id, Salt: "salt", S2KParams: []byte(iterations)}
	}
	const aes = etypeID.AES256_CTS_HMAC_SHA1_96
	for name, tc := range map[string]struct {
		answer []byte
		want   string
	}{
		"no hints":             {wants(t, nil), ""},
		"garbage for hints":    {wants(t, []byte("garbage")), ""},
		"an empty hint":        {wants(t, info(t)), "none of the encryption types"},
		"an unknown type":      {wants(t, info(t, hint(99, ""))), "none of the encryption types"},
		"4294967295 rounds":    {wants(t, info(t, hint(aes, "\xff\xff\xff\xff"))), "iterations"},
		"4294967296 rounds":    {wants(t, info(t, hint(aes, "\x00\x00\x00\x00"))), "iterations"},
		"rounds further down":  {wants(t, info(t, hint(aes, ""), hint(aes, "\xff\xff\xff\xff"))), "iterations"},
		"an empty reply":       {framed(nil), ""},
		"garbage for a reply":  {framed([]byte("garbage")), ""},
		"half a login reply":   {framed([]byte("\x6b\x03\x30\x01")), ""},
		"a reply with no hint": {reply(t, realmName), "unreadable message"},
		"another's reply":      {reply(t, "OTHER.TEST"), "CRealm"},
		"the demand, for ever": {wants(t, info(t, hint(aes, ""))), "PREAUTH_REQUIRED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kdc := runFront(t, r)
			kdc.answerBy(func([]byte) ([]byte, bool) { return tc.answer, true })
			begun := time.Now()
			err := start(t, mechanism(t, kdc.addr(), kerberos.Password("alice", password)))
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), password) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if took := time.Since(begun); took > patience/2 {
				t.Errorf("it took %v", took)
			}
			if n := kdc.logins.Load(); n > 2 {
				t.Errorf("%d requests, want 2 at most", n)
			}
		})
	}
}

// A KDC's word about a service ticket is not taken without its proof.
func TestTickets_of_a_hostile_KDC_are_refused(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	for name, answer := range map[string][]byte{
		"garbage": framed([]byte("garbage")),
		"empty":   framed(nil),
		"half":    framed([]byte("\x6d\x03\x30\x01")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kdc := runFront(t, r)
			kdc.answerBy(func(request []byte) ([]byte, bool) { return answer, request[0] == ticketRequest })
			if err := start(t, mechanism(t, kdc.addr(), kerberos.Password("alice", password))); err == nil {
				t.Error("it started an exchange")
			}
		})
	}
}

// The parser of keytabs puts the whole file into an error, and that of caches indexes unchecked.
func TestFiles_that_are_cut_off_show_nothing_and_end_nothing(t *testing.T) {
	t.Parallel()
	r := needRealm(t)
	krb5 := kerberos.WithConfigFile(config(t, r.addr()))
	for name, tc := range map[string]struct {
		file       string
		credential func(file string) kerberos.Credential
	}{
		"keytab": {r.keytab("app"), func(file string) kerberos.Credential { return kerberos.Keytab("app", file) }},
		"cache":  {kinit(t, r, "1h"), kerberos.CredentialCache},
	} {
		whole := readFile(t, tc.file)
		cut := filepath.Join(t.TempDir(), name)
		for n := range whole {
			writeFile(t, cut, whole[:n])
			_, err := kerberos.New(tc.credential(cut), krb5)
			if err == nil {
				continue // what is left is a file in itself
			}
			if text := err.Error(); !strings.Contains(text, cut) || len(text) > len(cut)+100 {
				t.Fatalf("%s of %d bytes: %q", name, n, text)
			}
		}
	}
}
