package digestmd5

import (
	"crypto/md5" //nolint:gosec // the mechanism's
	"encoding/hex"
	"errors"
	"unicode/utf8"
)

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
