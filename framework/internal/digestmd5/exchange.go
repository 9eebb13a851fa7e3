// Package digestmd5 is the client's side of SASL's mechanism DIGEST-MD5 (RFC 2831), as ZooKeeper's
// servers use it: with quality of protection "auth", and a fixed name of the service.
package digestmd5

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// digestURI names the service. Servers of ZooKeeper have no host name in it.
const digestURI = "zookeeper/zk-sasl-md5"

// nonceCount is the count of an initial authentication. No other authentication occurs here.
const nonceCount = "00000001"

// errServer is returned if a server does not prove that it knows the password.
var errServer = errors.New("the server did not prove that it knows the password")

// An Exchange is one authentication. It is used once.
type Exchange struct {
	user, password string
	cnonce         string
	next           func(x *Exchange, challenge []byte) (response []byte, done bool, err error)
	expected       string // the proof that the server has to send
}

// New returns an exchange for a user.
func New(user, password string) *Exchange {
	return &Exchange{user: user, password: password, cnonce: rand.Text(), next: (*Exchange).begin}
}

// Next takes the server's challenge and returns the response to it. The first response is empty,
// the second has the digest. When the server has proven itself, there is none. The error names no
// secret.
func (x *Exchange) Next(challenge []byte) (response []byte, done bool, err error) {
	return x.next(x, challenge)
}

func (x *Exchange) begin([]byte) ([]byte, bool, error) {
	x.next = (*Exchange).respond
	return []byte{}, false, nil
}

// respond returns the digest-response to the digest-challenge.
func (x *Exchange) respond(challenge []byte) ([]byte, bool, error) {
	d, err := parse(string(challenge))
	if err != nil {
		return nil, false, err
	}
	if err := supported(d); err != nil {
		return nil, false, err
	}
	utf8 := d.first("charset") == "utf-8"
	c := credentials{realm: d.first("realm"), nonce: d.first("nonce"), cnonce: x.cnonce}
	for field, text := range map[*[]byte]string{&c.userBytes: x.user, &c.realmBytes: c.realm, &c.passwordBytes: x.password} {
		if *field, err = encode(text, utf8); err != nil {
			return nil, false, err
		}
	}
	x.expected = c.digest("")
	x.next = (*Exchange).verify
	return []byte(x.response(c, utf8)), false, nil
}

// supported returns an error if this package does not support the challenge.
func supported(d directives) error {
	offered := d.first("qop")
	switch {
	case d.first("nonce") == "":
		return errors.New("challenge without a nonce")
	case d.first("algorithm") != "md5-sess":
		return fmt.Errorf("algorithm %.32q: must be md5-sess", d.first("algorithm"))
	case offered != "" && !slices.Contains(tokens(offered), "auth"):
		return fmt.Errorf("qualities of protection %.64q: must have auth", offered)
	}
	return nil
}

func (x *Exchange) response(c credentials, utf8 bool) string {
	var b strings.Builder
	if utf8 {
		b.WriteString("charset=utf-8,")
	}
	user := string(c.userBytes)
	if utf8 {
		user = x.user
	}
	fmt.Fprintf(&b, "username=%s,realm=%s,nonce=%s,nc=%s,cnonce=%s,digest-uri=%s,maxbuf=65536,response=%s,qop=auth",
		quote(user), quote(c.realm), quote(c.nonce), nonceCount, quote(c.cnonce), quote(digestURI), c.digest("AUTHENTICATE"))
	return b.String()
}

// verify checks the server's proof.
func (x *Exchange) verify(challenge []byte) ([]byte, bool, error) {
	x.next = (*Exchange).over
	d, err := parse(string(challenge))
	if err != nil {
		return nil, false, err
	}
	got, err := hex.DecodeString(d.first("rspauth"))
	want, _ := hex.DecodeString(x.expected)
	if err != nil || !hmac.Equal(got, want) {
		return nil, false, errServer
	}
	return nil, true, nil
}

func (x *Exchange) over([]byte) ([]byte, bool, error) {
	return nil, false, errors.New("the exchange is over")
}
