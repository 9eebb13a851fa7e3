package digestmd5_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/docent-go/docent/framework/internal/digestmd5"
	"github.com/docent-go/docent/internal/must"
)

const challenge = `realm="zk-sasl-md5",nonce="OA6MG9tEQGm2hh",charset=utf-8,algorithm=md5-sess`

// begun returns an exchange that has sent its empty first token.
func begun(t *testing.T, user, password string) *digestmd5.Exchange {
	t.Helper()
	x := digestmd5.New(user, password)
	if token, done, err := x.Next(nil); token == nil || len(token) != 0 || done || err != nil {
		t.Fatalf("first token %q, done %v, %v: want an empty one", token, done, err)
	}
	return x
}

func TestAChallengeIsAnswered(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ challenge, user, password, want string }{
		"as servers send it":    {challenge, "alice", "secret", `charset=utf-8,username="alice",realm="zk-sasl-md5",nonce="OA6MG9tEQGm2hh",nc=00000001,`},
		"quotes are escaped":    {challenge, `al"i\ce`, "secret", `username="al\"i\\ce"`},
		"several qualities":     {challenge + `,qop="auth-int, auth"`, "alice", "secret", "qop=auth"},
		"no realm":              {`nonce="a",algorithm=md5-sess,charset=utf-8`, "alice", "secret", `realm=""`},
		"Latin 1 without UTF-8": {`nonce="a",algorithm=md5-sess`, "é", "è", "username=\"\xe9\""},
		"no Latin 1":            {challenge, "жук", "密", `username="жук"`},
		"blanks and commas":     {` ,nonce = "a" ,, algorithm = md5-sess`, "alice", "secret", `nonce="a"`},
	} {
		token, done, err := begun(t, tc.user, tc.password).Next([]byte(tc.challenge))
		if err != nil || done || !strings.Contains(string(token), tc.want) || strings.Contains(string(token), tc.password) {
			t.Errorf("%s: %q, %v, %v, want %q in it", name, token, done, err, tc.want)
		}
	}
}

func TestAChallengeIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ challenge, user, want string }{
		"another algorithm":       {`nonce="a",algorithm=md5`, "alice", "algorithm"},
		"no nonce":                {`algorithm=md5-sess`, "alice", "nonce"},
		"integrity is wanted":     {challenge + `,qop="auth-int"`, "alice", "auth-int"},
		"no list":                 {"nonsense", "alice", "malformed"},
		"an open quote":           {`nonce="a`, "alice", "malformed"},
		"an escape of nothing":    {`nonce="a\`, "alice", "malformed"},
		"nothing":                 {"", "alice", "nonce"},
		"a user not in Latin 1":   {`nonce="a",algorithm=md5-sess`, "жук", "characters"},
		"a user that is no UTF-8": {challenge, "ж\xff\xfe", "characters"},
	} {
		_, done, err := begun(t, tc.user, "s3cr3t").Next([]byte(tc.challenge))
		if err == nil || done || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: done %v, %v, want %q in it", name, done, err, tc.want)
		}
	}
}

// The example of RFC 2831, section 4, has another digest-uri, so what is computed here is
// checked by real servers: see framework. A server without the password is found out.
func TestAServerHasToProveItself(t *testing.T) {
	t.Parallel()
	for _, proof := range []string{"", "rspauth=", "rspauth=00", "rspauth=" + strings.Repeat("0", 32), "x", `rspauth="zz"`} {
		x := begun(t, "alice", "s3cr3t")
		must.Get2(x.Next([]byte(challenge)))(t)
		token, done, err := x.Next([]byte(proof))
		if err == nil || done || token != nil {
			t.Errorf("%q: %q, done %v, %v", proof, token, done, err)
		}
		if _, done, err := x.Next(nil); err == nil || done {
			t.Errorf("%q: the exchange goes on", proof)
		}
	}
}

func TestTwoExchangesHaveDifferentNonces(t *testing.T) {
	t.Parallel()
	a, _, _ := begun(t, "alice", "x").Next([]byte(challenge))
	b, _, _ := begun(t, "alice", "x").Next([]byte(challenge))
	if string(a) == string(b) {
		t.Errorf("twice %q", a)
	}
}

func FuzzChallenge(f *testing.F) {
	f.Add(challenge)
	f.Add(`nonce="a\",qop="auth`)
	f.Fuzz(func(t *testing.T, challenge string) {
		x := begun(t, "alice", "s3cr3t-Pa55")
		token, done, err := x.Next([]byte(challenge))
		if done || (err == nil) == (token == nil) || strings.Contains(fmt.Sprint(string(token), err), "s3cr3t-Pa55") && !strings.Contains(challenge, "s3cr3t-Pa55") {
			t.Errorf("%q, %v, %v", token, done, err)
		}
	})
}
