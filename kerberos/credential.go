package kerberos

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/types"
)

// A Credential is what a client proves its identity by: [Keytab], [Password] or
// [CredentialCache]. It holds no secret that formatting shows.
type Credential interface {
	// prepare checks the credential and returns how it gets a ticket-granting ticket.
	prepare(realms *realms) (login, error)
}

// A login returns a new ticket-granting ticket.
type login func(ctx context.Context) (*ticket, error)

type credentialFunc func(realms *realms) (login, error)

func (f credentialFunc) prepare(realms *realms) (login, error) { return f(realms) }

// Keytab returns the credential of a principal whose keys are in a keytab file. The principal is
// "app@REALM" or "app/host@REALM". Without a realm it is in krb5.conf's default_realm. The client
// reads the file at every login, so a new one may replace it at any time.
func Keytab(principal, file string) Credential {
	return credentialFunc(func(realms *realms) (login, error) {
		who, err := parsePrincipal(principal, realms)
		if err != nil {
			return nil, err
		}
		load := func() (secret, error) { return keytabSecret(who, file) }
		if _, err := load(); err != nil {
			return nil, fmt.Errorf("kerberos: %w", err)
		}
		return loginBy(realms, who, load), nil
	})
}

// Password returns the credential of a principal that has a password. The principal is written as
// for [Keytab].
func Password(principal, password string) Credential {
	return credentialFunc(func(realms *realms) (login, error) {
		who, err := parsePrincipal(principal, realms)
		if err == nil && password == "" {
			err = errors.New("kerberos: password: must not be empty")
		}
		if err != nil {
			return nil, err
		}
		s := func() (secret, error) { return passwordSecret(who, password), nil }
		return loginBy(realms, who, s), nil
	})
}

// A principal is a client's name.
type principal struct {
	name  types.PrincipalName
	realm string
}

func (p principal) String() string { return p.name.PrincipalNameString() + "@" + p.realm }

func (p principal) credentials() *credentials.Credentials {
	return credentials.NewFromPrincipalName(p.name, p.realm)
}

func parsePrincipal(text string, realms *realms) (principal, error) {
	name, realm, found := strings.Cut(text, "@")
	if !found {
		realm = realms.LibDefaults.DefaultRealm
	}
	switch {
	case name == "" || strings.Contains(realm, "@"):
		return principal{}, fmt.Errorf("kerberos: principal %q: must be name@REALM", text)
	case realm == "":
		return principal{}, fmt.Errorf(
			"kerberos: principal %q: must have a realm, since krb5.conf has no default_realm", text)
	}
	return principal{types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, name), realm}, nil
}

// keytabSecret reads the keys of who. Its errors are our own where the parser's show the
// file's contents.
func keytabSecret(who principal, file string) (s secret, err error) {
	defer guard(&err)
	table, err := readKeytab(file)
	if err != nil {
		return secret{}, err
	}
	s = secret{creds: who.credentials().WithKeytab(table), keys: make(map[int32]versioned)}
	for _, entry := range table.Entries {
		name := types.PrincipalName{NameString: entry.Principal.Components}
		if entry.Principal.Realm != who.realm || !who.name.Equal(name) {
			continue
		}
		if latest := s.keys[entry.Key.KeyType]; int(entry.KVNO) >= latest.version {
			s.keys[entry.Key.KeyType] = versioned{entry.Key, int(entry.KVNO)}
		}
	}
	latest := table.Entries[:0] // the reader of the reply uses the entries' times
	for _, entry := range table.Entries {
		if int(entry.KVNO) == s.keys[entry.Key.KeyType].version {
			latest = append(latest, entry)
		}
	}
	table.Entries = latest
	if len(s.keys) == 0 {
		return secret{}, fmt.Errorf("keytab %s: has no key of %s", file, who)
	}
	return s, nil
}

func readKeytab(file string) (*keytab.Keytab, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, fmt.Errorf("keytab: %w", err)
	}
	table := keytab.New()
	if table.Unmarshal(text) != nil {
		return nil, fmt.Errorf("keytab %s: is malformed", file)
	}
	return table, nil
}
