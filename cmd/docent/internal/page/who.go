package page

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/show"
)

// A who is a contender, as rows and queues show it. No data of its znode is shown, and no identity.
type who struct {
	Znode   string `json:"znode"`
	Name    string `json:"name"`
	Owner   string `json:"owner,omitempty"`
	State   string `json:"state"`
	Side    string `json:"side"`
	By      string `json:"by"`
	Session string `json:"session"`
	Attempt string `json:"attempt,omitempty"` // differs between the threads of a session; "" with an owner
	Fence   string `json:"fence"`
	Since   int64  `json:"since"` // ms; when the znode was created, by the servers' clock
	Revoked bool   `json:"revoked,omitempty"`
}

func whoOf(c *inspect.Contender) who {
	w := who{
		Znode: c.Znode, Name: nameOf(c), State: string(c.State), Side: string(c.Side), By: string(c.By),
		Session: show.Session(c.Session), Fence: fenceText(c.Czxid), Since: millis(c.Created), Revoked: c.Revoked,
	}
	if c.Meta != nil {
		w.Owner = cut(c.Meta.Owner)
	}
	if w.Owner == "" {
		w.Attempt = attemptOf(c)
	}
	return w
}

// attemptOf returns the beginning of the random id and the number in the znode's name. Both are of one
// attempt of one thread, and are all that tells it from others of its session.
func attemptOf(c *inspect.Contender) string {
	name := strings.TrimPrefix(path.Base(c.Znode), "_c_")
	const id = 8
	if len(name) <= id || strings.Trim(name[:id], "0123456789abcdef") != "" {
		return fmt.Sprintf("#%d", c.Sequence)
	}
	return fmt.Sprintf("%s #%d", name[:id], c.Sequence)
}

// nameOf returns host and process id, else what the znode says, else the session.
func nameOf(c *inspect.Contender) string {
	switch {
	case c.Meta != nil && c.Meta.Host != "":
		return fmt.Sprintf("%s:%d", cut(c.Meta.Host), c.Meta.PID)
	case c.Label != "":
		return c.Label
	}
	return show.Session(c.Session)
}

func fenceText(czxid int64) string { return strconv.FormatInt(czxid, 10) }

// millis returns t in milliseconds since 1970, 0 for no time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// maxName is how many bytes of a name are sent. The page shows fewer characters. Any client may write a
// name of a megabyte, and each tab would get it with each row.
const maxName = 2 << 10

// cut returns the beginning of a name that is too long.
func cut(name string) string {
	if len(name) <= maxName {
		return name
	}
	return strings.ToValidUTF8(name[:maxName], "") + "…"
}
