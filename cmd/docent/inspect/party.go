package inspect

import (
	"fmt"
)

// A Strength says how certain it is that the contenders of a [Party] are one owner.
type Strength string

// The strengths.
const (
	Exact     Strength = "exact"   // the znodes' metadata say so
	Named     Strength = "named"   // one session and one owner's name; two owners may have one name
	BySession Strength = "session" // one session alone: perhaps several threads of one process
)

// A Party is an owner as the znodes of its contenders show it.
type Party struct {
	ID       string // equal for all contenders of the party
	Strength Strength
	Session  int64 // of one contender
	Host     string
	PID      int
	Owner    string // the owner's name
	Label    string // of a contender without metadata: an address, an identifier
}

// PartyOf returns the party of the contender. A contender that was not read, or whose znode belongs to
// no session, is a party of its own.
func PartyOf(c Contender) Party {
	p := Party{Session: c.Session, Label: c.Label, Strength: BySession}
	m := c.Meta
	if m != nil {
		p.Host, p.PID, p.Owner = m.Host, m.PID, m.Owner
	}
	switch {
	case c.Session == 0:
		p.ID = c.Znode
	case m != nil && m.Party != "" && !m.Handoff:
		p.ID, p.Strength = "party "+m.Party, Exact
	case m != nil && m.Owner != "" && !m.Handoff:
		p.ID, p.Strength = fmt.Sprintf("0x%x %s", uint64(c.Session), m.Owner), Named
	default:
		p.ID = fmt.Sprintf("0x%x", uint64(c.Session))
	}
	return p
}

// String returns the host, the process and the owner's name; without metadata the label or the
// session. It may have any characters that the znode's creator wrote.
func (p Party) String() string {
	switch {
	case p.Host != "" && p.Owner != "":
		return fmt.Sprintf("%s:%d %s", p.Host, p.PID, p.Owner)
	case p.Host != "":
		return fmt.Sprintf("%s:%d", p.Host, p.PID)
	case p.Label != "":
		return p.Label
	}
	return fmt.Sprintf("session 0x%x", uint64(p.Session))
}
