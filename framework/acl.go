package framework

import "fmt"

// A Permission is a set of things that an [ACL] entry permits.
type Permission int32

// The permissions of ZooKeeper.
const (
	PermRead Permission = 1 << iota
	PermWrite
	PermCreate
	PermDelete
	PermAdmin
	PermAll = PermRead | PermWrite | PermCreate | PermDelete | PermAdmin
)

// An ACL is one entry of a znode's access control list.
type ACL struct {
	Perms  Permission
	Scheme string // "world", "auth", "digest", "ip", "x509", …
	ID     string // what the scheme identifies; never shown in an error or a log
}

// String returns the entry without its ID.
func (a ACL) String() string { return fmt.Sprintf("%s:***:%d", a.Scheme, a.Perms) }

// GoString is String, so that %#v shows no ID either.
func (a ACL) GoString() string { return a.String() }

// OpenACL permits everything to every client. It is the default.
func OpenACL() []ACL { return []ACL{{PermAll, "world", "anyone"}} }

// CreatorACL permits everything to the identities that the client has when it creates the znode
// ([WithAuth] sets them), and nothing to others.
func CreatorACL() []ACL { return []ACL{{PermAll, "auth", ""}} }

// ReadOnlyACL permits every client to read, and nothing else.
func ReadOnlyACL() []ACL { return []ACL{{PermRead, "world", "anyone"}} }

// validateACL returns all faults of acl; its errors name the argument what.
func validateACL(what string, acl []ACL) error {
	if len(acl) == 0 {
		return fmt.Errorf("%s: must have at least one entry", what)
	}
	for i, entry := range acl {
		if entry.Perms < 1 || entry.Perms > PermAll {
			return fmt.Errorf("%s: entry %d: permissions %d: must be between 1 and %d", what, i, entry.Perms, PermAll)
		}
		if entry.Scheme == "" {
			return fmt.Errorf("%s: entry %d: scheme must not be empty", what, i)
		}
	}
	return nil
}
