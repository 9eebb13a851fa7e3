// Package acl has the entries of znodes' access control lists.
//
// Stability: stable.
package acl

import (
	"crypto/sha1" //nolint:gosec // ZooKeeper's digest
	"encoding/base64"
	"fmt"
)

// A Permission is a set of things that an [Entry] permits.
type Permission int32

// The permissions of ZooKeeper.
const (
	Read Permission = 1 << iota
	Write
	Create
	Delete
	Admin
	All = Read | Write | Create | Delete | Admin
)

// An Entry is one entry of a znode's access control list.
type Entry struct {
	Perms  Permission
	Scheme string // "world", "auth", "digest", "ip", "x509", …
	ID     string // what the scheme identifies; never shown in an error or a log
}

// String returns the entry without its ID.
func (e Entry) String() string { return fmt.Sprintf("%s:***:%d", e.Scheme, e.Perms) }

// GoString is String, so that %#v shows no ID either.
func (e Entry) GoString() string { return e.String() }

// Open permits everything to every client. It is the default.
func Open() []Entry { return []Entry{{All, "world", "anyone"}} }

// Creator permits everything to the identities that the client has when it creates the znode
// (framework.WithAuth sets them), and nothing to others.
func Creator() []Entry { return []Entry{{All, "auth", ""}} }

// Digest permits everything to who has the user's name and password, which a client presents by
// framework.WithAuth("digest", []byte("user:password")). The entry has ZooKeeper's hash of both, a SHA-1 without a
// salt, as DigestAuthenticationProvider makes it; whoever may read the ACL can try passwords against it.
func Digest(user, password string) []Entry {
	sum := sha1.Sum([]byte(user + ":" + password)) //nolint:gosec // as above
	return []Entry{{All, "digest", user + ":" + base64.StdEncoding.EncodeToString(sum[:])}}
}

// ReadOnly permits every client to read, and nothing else.
func ReadOnly() []Entry { return []Entry{{Read, "world", "anyone"}} }
