package kerberos_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/kerberos"
)

// flagSubkey is set in messages that are protected by the server's own key.
const flagSubkey = 4

func TestExchange_chooses_no_layer_of_a_server_that_proves_itself(t *testing.T) {
	t.Parallel()
	for _, id := range []int32{
		etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96,
		etypeID.AES128_CTS_HMAC_SHA256_128, etypeID.AES256_CTS_HMAC_SHA384_192,
	} {
		key := newKey(t, id)
		subkey := newKey(t, id)
		for name, a := range map[string]*acceptor{
			"plain":           {offer: []byte{1, 0, 0, 0}},
			"all layers":      {offer: []byte{7, 1, 0, 0}},
			"rotated":         {offer: []byte{1, 0, 0, 0}, rotation: 5},
			"rotated around":  {offer: []byte{1, 0, 0, 0}, rotation: 1000},
			"server's subkey": {offer: []byte{1, 0, 0, 0}, subkey: subkey, flags: flagSubkey},
		} {
			a.key, a.proof = key, key
			x := kerberos.NewExchange(key)
			first, done, err := x.Next(nil)
			if err != nil || done {
				t.Fatal(name, done, err)
			}
			asked := a.asked(t, first)
			second, done, err := x.Next(a.reply(t, asked))
			if err != nil || done || second == nil || len(second) != 0 {
				t.Fatalf("%s: after the proof: % x, %v, %v, want an empty token", name, second, done, err)
			}
			third, done, err := x.Next(a.layers(t))
			if err != nil || !done {
				t.Fatalf("%s: after the offer: %v, %v", name, done, err)
			}
			if got := a.chosen(t, asked, third); !bytes.Equal(got, []byte{1, 0, 0, 0}) {
				t.Errorf("%s: it chooses % x", name, got)
			}
			if _, done, err := x.Next(nil); done || err == nil {
				t.Errorf("%s: once it is over: %v, %v", name, done, err)
			}
		}
	}
}

func TestExchange_refuses_a_server_that_proves_nothing(t *testing.T) {
	t.Parallel()
	key := newKey(t, etypeID.AES256_CTS_HMAC_SHA1_96)
	for name, tc := range map[string]struct {
		a    acceptor
		want string
	}{
		"another key":          {acceptor{proof: newKey(t, key.KeyType)}, "did not prove"},
		"another request":      {acceptor{proof: key, late: time.Second}, "answers another request"},
		"another subkey":       {acceptor{proof: key, subkey: newKey(t, key.KeyType), offer: []byte{1, 0, 0, 0}}, "another key"},
		"wrong checksum":       {acceptor{proof: key, offer: []byte{1, 0, 0, 0}, broken: true}, "wrong checksum"},
		"encrypted offer":      {acceptor{proof: key, offer: []byte{1, 0, 0, 0}, flags: 2}, "encrypted"},
		"only with layers":     {acceptor{proof: key, offer: []byte{6, 1, 0, 0}}, "insists"},
		"an offer of nothing":  {acceptor{proof: key, offer: []byte{}}, "insists"},
		"an offer of too much": {acceptor{proof: key, offer: []byte{1, 0, 0, 0, 0}}, "insists"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := tc.a
			a.key = key
			x := kerberos.NewExchange(key)
			first, _ := must.Get2(x.Next(nil))(t)
			_, done, err := x.Next(a.reply(t, a.asked(t, first)))
			if err == nil {
				_, done, err = x.Next(a.layers(t))
			}
			if done || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, %v, want %q", done, err, tc.want)
			}
		})
	}
}

func TestExchange_refuses_what_is_no_token(t *testing.T) {
	t.Parallel()
	key := newKey(t, etypeID.AES128_CTS_HMAC_SHA1_96)
	for name, tc := range map[string]struct {
		challenge []byte
		want      string
	}{
		"nothing":           {nil, "malformed"},
		"too little":        {[]byte{0x60, 0}, "none of Kerberos"},
		"another mechanism": {[]byte("\x60\x0a\x06\x06\x2b\x06\x01\x05\x05\x02\x01\x00"), "none of Kerberos"},
		"a request":         {token("\x01\x00", nil), "kind"},
		"an empty proof":    {token("\x02\x00", nil), ""},
		"a short secret":    {token("\x02\x00", marshalled(t, messages.APRep{PVNO: 5, MsgType: 15, EncPart: types.EncryptedData{EType: 17, Cipher: []byte("s")}}, 15)), ""},
		"an error":          {token("\x03\x00", refusedBy(t, errorcode.KRB_AP_ERR_SKEW)[4:]), "KRB_AP_ERR_SKEW"},
		"an empty error":    {token("\x03\x00", nil), ""},
	} {
		x := kerberos.NewExchange(key)
		must.Get2(x.Next(nil))(t)
		if _, done, err := x.Next(tc.challenge); done || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v, want %q", name, done, err, tc.want)
		}
	}
}

// No server that lacks the session key brings an exchange to its end.
func FuzzExchange(f *testing.F) {
	key := newKey(f, etypeID.AES128_CTS_HMAC_SHA1_96)
	a := &acceptor{key: key, proof: key, offer: []byte{1, 0, 0, 0}}
	f.Add(a.reply(f, types.Authenticator{CTime: time.Unix(1, 0)}), a.layers(f))
	f.Add(token("\x03\x00", nil), []byte{5, 4, 1, 255})
	f.Fuzz(func(t *testing.T, proof, offer []byte) {
		x := kerberos.NewExchange(newKey(t, etypeID.AES128_CTS_HMAC_SHA1_96))
		must.Get2(x.Next(nil))(t)
		for _, challenge := range [][]byte{proof, offer} {
			if token, done, err := x.Next(challenge); done || err == nil {
				t.Fatalf("% x, %v, %v", token, done, err)
			}
		}
	})
}
