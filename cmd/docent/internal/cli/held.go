package cli

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/docent-go/docent/framework"
)

// HeldVariable is the environment variable with the locks that outer docent execs hold, one a line.
const HeldVariable = "DOCENT_HELD"

// A Held is a lock that an outer docent exec holds, or has held: what it runs keeps the variable.
type Held struct {
	Path    string // of the lock, as the ensemble knows it
	Node    string // of the hold, as the ensemble knows it
	Fence   int64
	Session int64
	Read    bool // the read side of a lock, which does not exclude another reader
}

const heldRead = "read"

// String returns the line of [HeldVariable].
func (h Held) String() string {
	text := fmt.Sprintf("%s|%s|%d|0x%x", url.QueryEscape(h.Path), url.QueryEscape(h.Node), h.Fence, uint64(h.Session))
	if h.Read {
		text += "|" + heldRead
	}
	return text
}

// parseHeld returns what a line says. It reports false if that is not what docent writes.
func parseHeld(line string) (h Held, ok bool) {
	fields := strings.Split(line, "|")
	if len(fields) < 4 {
		return Held{}, false
	}
	path, pathErr := url.QueryUnescape(fields[0])
	node, nodeErr := url.QueryUnescape(fields[1])
	fence, fenceErr := strconv.ParseInt(fields[2], 10, 64)
	session, sessionErr := strconv.ParseUint(fields[3], 0, 64)
	if pathErr != nil || nodeErr != nil || fenceErr != nil || sessionErr != nil || framework.ValidatePath(node) != nil {
		return Held{}, false
	}
	return Held{path, node, fence, int64(session), len(fields) > 4 && fields[4] == heldRead}, true
}

// OuterHold reports whether an outer docent exec holds the lock at path, so that a wait for it would be one for
// itself. It asks the ensemble for the hold's znode: the hold may have ended, and servers have several names. The
// server may be behind. A reader does not wait for a reader.
func (a *App) OuterHold(ctx context.Context, c *framework.Client, path string, read bool) (bool, error) {
	for line := range strings.FieldsSeq(a.Getenv(HeldVariable)) {
		h, ok := parseHeld(line)
		if !ok || h.Path != c.AbsolutePath(path) || read && h.Read {
			continue
		}
		if err := c.Sync(ctx, path); err != nil {
			return false, err
		}
		stat, exists, err := c.Root().Exists(ctx, h.Node)
		if err != nil {
			return false, err
		}
		if exists && stat.Czxid == h.Fence && stat.EphemeralOwner == h.Session {
			return true, nil
		}
	}
	return false, nil
}
