package inspect

import (
	"strings"
	"unicode/utf8"

	"github.com/docent-go/docent/internal/queuenode"
	"github.com/docent-go/docent/recipes/lease"
)

// maxLabel is the greatest length of a label in bytes. Longer data are no name.
const maxLabel = 255

// contenderOf returns c with what was read of its znode.
func contenderOf(z Znode, c Contender) Contender {
	c.Znode = z.Path
	c.By = OtherLibrary
	if isKazooName(z.name()) {
		c.By = Kazoo
	}
	if z.Stat.Czxid == 0 {
		return c
	}
	c.Session, c.Czxid, c.Created = z.Stat.EphemeralOwner, z.Stat.Czxid, z.Stat.Ctime
	c.Data = z.Data
	if m, ok := lease.DecodeMetadata(z.Data); ok {
		c.Meta, c.Data = m, m.Data
	}
	switch {
	case queuenode.RequestsRelease(z.Data, z.Stat.Version):
		c.Revoked, c.RevokedAt, c.Data = true, z.Stat.Mtime, nil
	case c.Meta != nil:
		c.By = Docent
	case strings.HasPrefix(z.name(), protection):
		c.By = Curator
	}
	if c.Meta == nil && len(c.Data) <= maxLabel && utf8.Valid(c.Data) {
		c.Label = string(c.Data)
	}
	return c
}

// protection begins the names of znodes that Curator and docent find again after a lost reply.
const protection = "_c_"

// kazooID is the number of hexadecimal digits with which the names of kazoo's znodes begin.
const kazooID = 32

// isKazooName reports whether the name begins as kazoo's do.
func isKazooName(name string) bool {
	return len(name) >= kazooID && strings.Trim(name[:kazooID], "0123456789abcdef") == ""
}
