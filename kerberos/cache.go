package kerberos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/docent-go/docent/framework"
)

// maxFile bounds what is read of a keytab or credential cache.
const maxFile = 1 << 20

// CredentialCache returns the credential whose ticket-granting ticket is in a cache file, as kinit
// writes them. The client does not renew the ticket. It reads the file again before the ticket
// expires, so kinit, k5start or sssd may renew it there. If the ticket in the file has expired,
// the error wraps [framework.ErrAuthFailed].
func CredentialCache(file string) Credential {
	return credentialFunc(func(*realms) (login, error) {
		if _, err := cachedTicket(file); err != nil {
			return nil, fmt.Errorf("kerberos: %w", err)
		}
		return func(context.Context) (*ticket, error) {
			t, err := cachedTicket(file)
			if err == nil && !t.valid() {
				err = fmt.Errorf("%w: credential cache %s: its ticket expired at %s",
					framework.ErrAuthFailed, file, t.end.Format(time.RFC3339))
			}
			return t, err
		}, nil
	})
}

// cachedTicket reads the ticket-granting ticket of a cache file. Its errors are our own,
// so that none can show the file's contents.
func cachedTicket(file string) (t *ticket, err error) {
	text, err := readFile(file)
	if err != nil {
		return nil, fmt.Errorf("credential cache: %w", err)
	}
	defer func() {
		if recover() != nil { // the parser indexes unchecked
			t, err = nil, fmt.Errorf("credential cache %s: is malformed", file)
		}
	}()
	var cache credentials.CCache
	if cache.Unmarshal(text) != nil {
		return nil, fmt.Errorf("credential cache %s: is malformed", file)
	}
	realm := cache.DefaultPrincipal.Realm
	entry, ok := cache.GetEntry(types.PrincipalName{NameString: []string{"krbtgt", realm}})
	if !ok {
		return nil, fmt.Errorf("credential cache %s: has no ticket-granting ticket of %s",
			file, realm)
	}
	var body messages.Ticket
	if body.Unmarshal(entry.Ticket) != nil {
		return nil, fmt.Errorf("credential cache %s: is malformed", file)
	}
	t = &ticket{
		body:   body,
		key:    entry.Key,
		client: cache.DefaultPrincipal.PrincipalName,
		realm:  realm,
		start:  entry.StartTime,
		end:    entry.EndTime,
	}
	if t.start.Unix() == 0 {
		t.start = entry.AuthTime
	}
	return t, nil
}

// readFile reads a small file.
func readFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s: %w", file, errors.New("too long"))
	}
	return os.ReadFile(file)
}
