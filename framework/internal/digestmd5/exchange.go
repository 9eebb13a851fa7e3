// Package digestmd5 is the client's side of SASL's mechanism DIGEST-MD5 (RFC 2831), as ZooKeeper's
// servers use it: with quality of protection "auth", and a fixed name of the service.
package digestmd5

import (
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // the mechanism's
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
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
	takesUTF8 := d["charset"] == "utf-8"
	c := credentials{realm: d["realm"], nonce: d["nonce"], cnonce: x.cnonce}
	for field, text := range map[*[]byte]string{&c.userBytes: x.user, &c.realmBytes: c.realm, &c.passwordBytes: x.password} {
		if *field, err = encode(text, takesUTF8); err != nil {
			return nil, false, err
		}
	}
	x.expected = c.digest("")
	x.next = (*Exchange).verify
	return []byte(x.response(c, takesUTF8)), false, nil
}

// supported returns an error if this package does not support the challenge.
func supported(d directives) error {
	offered := d["qop"]
	switch {
	case d["nonce"] == "":
		return errors.New("challenge without a nonce")
	case d["algorithm"] != "md5-sess":
		return fmt.Errorf("algorithm %.32q: must be md5-sess", d["algorithm"])
	case offered != "" && !slices.Contains(tokens(offered), "auth"):
		return fmt.Errorf("qualities of protection %.64q: must have auth", offered)
	}
	return nil
}

func (x *Exchange) response(c credentials, takesUTF8 bool) string {
	var b strings.Builder
	if takesUTF8 {
		b.WriteString("charset=utf-8,")
	}
	user := string(c.userBytes)
	if takesUTF8 {
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
	got, err := hex.DecodeString(d["rspauth"])
	want, _ := hex.DecodeString(x.expected)
	if err != nil || !hmac.Equal(got, want) {
		return nil, false, errServer
	}
	return nil, true, nil
}

func (x *Exchange) over([]byte) ([]byte, bool, error) {
	return nil, false, errors.New("the exchange is over")
}

// credentials have the inputs of the digests.
type credentials struct {
	userBytes, realmBytes, passwordBytes []byte // in the encoding of digests
	realm, nonce, cnonce                 string
}

// digest returns the response-value of RFC 2831, 2.1.2.1: the client's for the method
// "AUTHENTICATE", the server's for "".
func (c credentials) digest(method string) string {
	secret := md5.Sum(joined(c.userBytes, c.realmBytes, c.passwordBytes))
	a1 := hash(joined(secret[:], []byte(c.nonce), []byte(c.cnonce)))
	a2 := hash([]byte(method + ":" + digestURI))
	return hash([]byte(a1 + ":" + c.nonce + ":" + nonceCount + ":" + c.cnonce + ":auth:" + a2))
}

func hash(b []byte) string {
	sum := md5.Sum(b) //nolint:gosec // the mechanism's
	return hex.EncodeToString(sum[:])
}

func joined(first []byte, rest ...[]byte) []byte {
	b := append([]byte(nil), first...)
	for _, r := range rest {
		b = append(append(b, ':'), r...)
	}
	return b
}

// encode returns text in the encoding of digests. That is ISO 8859-1 if it has all characters of
// text, else UTF-8 if the server accepts that.
func encode(text string, takesUTF8 bool) ([]byte, error) {
	b := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 0xff {
			if !takesUTF8 || !utf8.ValidString(text) {
				return nil, errors.New("user or password has characters that the server does not take")
			}
			return []byte(text), nil
		}
		b = append(b, byte(r))
	}
	return b, nil
}

// errMalformed is returned for a challenge that is no list of directives.
var errMalformed = errors.New("malformed challenge")

// directives are the content of a challenge. Of a name that occurs several times, the first value counts.
type directives map[string]string

// parse parses a list such as name=value, name="quoted value".
func parse(challenge string) (directives, error) {
	d := make(directives)
	for rest := skip(challenge); rest != ""; rest = skip(rest) {
		name, after, ok := strings.Cut(rest, "=")
		if !ok {
			return nil, errMalformed
		}
		value, after, ok := readValue(strings.TrimLeft(after, " \t"))
		if !ok {
			return nil, errMalformed
		}
		name = strings.ToLower(strings.TrimSpace(name))
		if _, known := d[name]; !known {
			d[name] = value
		}
		rest = after
	}
	return d, nil
}

// skip removes the separators at the start of s.
func skip(s string) string { return strings.TrimLeft(s, ", \t\r\n") }

// readValue returns the value at the start of s, and the rest of s.
func readValue(s string) (value, rest string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, ", \t\r\n")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}

// tokens splits a list of tokens.
func tokens(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
}

func quote(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }
