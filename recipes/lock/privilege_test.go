package lock_test

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/acl"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

// digest returns the ACL entry of a user and password, as docs/security.md has it.
func digest(user, password string, perms acl.Permission) acl.Entry {
	sum := sha1.Sum([]byte(user + ":" + password))
	return acl.Entry{Perms: perms, Scheme: "digest", ID: user + ":" + base64.StdEncoding.EncodeToString(sum[:])}
}

// A service may only read, create and delete in a lock's directory, and nothing elsewhere. It can
// use the lock with znodes that only it can read. Each of the three permissions is needed.
func TestTheLeastPrivilegeOfALock(t *testing.T) {
	t.Parallel()
	const all = acl.Read | acl.Create | acl.Delete
	cases := map[string]struct {
		perms acl.Permission
		want  error
	}{
		"with all three":        {all, nil},
		"without create":        {all &^ acl.Create, framework.ErrNoAuth},
		"without read":          {all &^ acl.Read, framework.ErrNoAuth},
		"without delete":        {all &^ acl.Delete, framework.ErrNoAuth},
		"with write and admin":  {acl.Write | acl.Admin, framework.ErrNoAuth},
		"with one of the three": {acl.Create, framework.ErrNoAuth},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				first, second := restricted(t, c.perms)
				if err := useOnce(t, first); !errors.Is(err, c.want) {
					t.Errorf("first: %v, want %v", err, c.want)
				}
				if c.want != nil {
					return // a znode that can't be deleted blocks the second
				}
				if err := useOnce(t, second); err != nil {
					t.Errorf("second: %v", err)
				}
			})
		})
	}
}

// restricted returns a mutex of each of two clients that have the permissions in its directory.
func restricted(t *testing.T, perms acl.Permission) (first, second *lock.Mutex) {
	t.Helper()
	server := zkserver.Run(t, zkenv.DrawVersion(t)...)
	connect := func(user, password string) *framework.Client {
		c := must.Get(framework.NewClient(server.Addr(), framework.WithDialer(server.Dial),
			framework.WithAuth("digest", fmt.Appendf(nil, "%s:%s", user, password))))(t)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	operator := connect("operator", "secret")
	_, err := operator.Create(t.Context(), "/locks", nil, framework.WithACL(digest("operator", "secret", acl.All)))
	if err == nil {
		_, err = operator.Create(t.Context(), "/locks/report", nil,
			framework.WithACL(digest("operator", "secret", acl.All), digest("service", "word", perms)))
	}
	if err != nil {
		t.Fatal(err)
	}
	mutex := func() *lock.Mutex {
		m := must.Get(lock.NewMutex(connect("service", "word"), "/locks/report", recipes.WithACL(acl.Creator()...)))(t)
		return m
	}
	return mutex(), mutex()
}

// useOnce locks the mutex, reads its participants, and releases it.
func useOnce(t *testing.T, m *lock.Mutex) error {
	t.Helper()
	return lock.Do(t.Context(), m, func(ctx context.Context, _ *lock.Lease) error {
		participants, err := m.Participants(ctx)
		if err == nil && (len(participants) != 1 || !participants[0].Holder || participants[0].Metadata == nil) {
			t.Errorf("participants %v, want the holder with its metadata", participants)
		}
		return err
	})
}
