package zkserver

import (
	"crypto/sha1"
	"encoding/base64"
	"net/netip"
	"slices"
	"strings"

	"github.com/docent-go/docent/internal/proto"
)

// Permissions of an ACL entry.
const (
	permRead   int32 = 1
	permWrite  int32 = 2
	permCreate int32 = 4
	permDelete int32 = 8
	permAdmin  int32 = 16
	permAll    int32 = 31
)

// An authID is an identity: of a client, or in an ACL.
type authID struct{ scheme, id string }

// An acl is one entry of a node's access list. A list is never changed in place.
type acl struct {
	perms int32
	id    authID
}

// worldID returns the identity that every client has.
func worldID() authID { return authID{scheme: "world", id: "anyone"} }

// permits reports whether a client with the given identities has one of the
// permissions wanted. An empty list permits everything, as ZooKeeper's does.
func permits(list []acl, ids []authID, wanted int32) bool {
	if len(list) == 0 {
		return true
	}
	for _, entry := range list {
		if entry.perms&wanted == 0 {
			continue
		}
		if entry.id == worldID() {
			return true
		}
		if slices.ContainsFunc(ids, entry.id.matches) {
			return true
		}
	}
	return false
}

// matches reports whether the entry's identity covers the client's.
func (a authID) matches(client authID) bool {
	if a.scheme != client.scheme {
		return false
	}
	switch a.scheme {
	case "digest":
		return a.id == client.id
	case "ip":
		return matchIP(a.id, client.id)
	}
	return false
}

// expandACL returns the list as it is stored: without duplicates, and with the
// client's own identities in the place of the scheme "auth". It reports whether
// the list is valid.
func expandACL(list []acl, ids []authID) ([]acl, bool) {
	var expanded []acl
	for i, entry := range list {
		switch {
		case slices.Contains(list[:i], entry):
		case entry.id == worldID():
			expanded = append(expanded, entry)
		case entry.id.scheme == "auth":
			before := len(expanded)
			for _, id := range ids {
				if id.scheme == "digest" {
					expanded = append(expanded, acl{perms: entry.perms, id: id})
				}
			}
			if len(expanded) == before {
				return nil, false
			}
		case entry.id.wellFormed():
			expanded = append(expanded, entry)
		default:
			return nil, false
		}
	}
	return expanded, len(expanded) > 0
}

func (a authID) wellFormed() bool {
	switch a.scheme {
	case "digest":
		user, hash, found := strings.Cut(a.id, ":")
		// "user:" has no hash; ":hash" is accepted; a second colon is not, unless
		// nothing follows it.
		hash = strings.TrimRight(hash, ":")
		return found && hash != "" && !strings.Contains(hash, ":") && user+hash != ""
	case "ip":
		_, ok := parseNet(a.id)
		return ok
	}
	return false
}

// digestID returns the identity that an auth request with the scheme digest
// gives: the secret is "user:password".
func digestID(secret string) authID {
	user, _, _ := strings.Cut(secret, ":")
	sum := sha1.Sum([]byte(secret))
	return authID{scheme: "digest", id: user + ":" + base64.StdEncoding.EncodeToString(sum[:])}
}

// parseNet decodes "address" or "address/bits". ZooKeeper 3.8 knows IPv4 only.
func parseNet(s string) (netip.Prefix, bool) {
	if !strings.Contains(s, "/") {
		s += "/32"
	}
	prefix, err := netip.ParsePrefix(s)
	return prefix, err == nil && prefix.Addr().Is4()
}

func matchIP(expr, client string) bool {
	prefix, ok := parseNet(expr)
	from, err := netip.ParseAddr(client)
	return ok && err == nil && prefix.Masked().Contains(from.Unmap())
}

// maskSecrets returns the list as it is shown to a client that may read but not
// administer the node.
func maskSecrets(list []acl) []acl {
	masked := slices.Clone(list)
	for i := range masked {
		if masked[i].id.scheme == "digest" {
			user, _, _ := strings.Cut(masked[i].id.id, ":")
			masked[i].id.id = user + ":x"
		}
	}
	return masked
}

// takeACLs takes an access list.
func takeACLs(d *proto.Decoder) []acl {
	n := d.Count(12)
	if n == 0 {
		return nil
	}
	list := make([]acl, 0, n)
	for range n {
		list = append(list, acl{perms: d.Int32(), id: authID{scheme: d.String(), id: d.String()}})
	}
	return list
}

// putACLs appends an access list.
func putACLs(e *proto.Encoder, list []acl) {
	e.Int32(int32(len(list)))
	for _, a := range list {
		e.Int32(a.perms)
		e.String(a.id.scheme)
		e.String(a.id.id)
	}
}
