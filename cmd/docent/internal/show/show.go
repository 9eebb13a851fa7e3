// Package show names locks and contenders in text that a terminal can show.
package show

import (
	"fmt"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// Counted returns the number with its noun.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Age returns how long ago t was, as Duration does. A t in the future is now.
func Age(now, t time.Time) string {
	if t.IsZero() {
		return "?"
	}
	return Duration(max(now.Sub(t), 0))
}

// Since is Age of what may not be there: "-" for no time.
func Since(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return Age(now, t)
}

// Duration returns d in two units: 4m12s, 3h05m, 2d07h.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	d = d.Truncate(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
}

// Who names the contender, in text that a terminal can show.
func Who(c inspect.Contender) string {
	if !c.Read() {
		return "?"
	}
	return cli.Safe(inspect.PartyOf(c).String())
}

// By names the library that made the contender's znode, as far as it shows: docent without metadata, as
// with a name or data of the user's, writes what Curator writes.
func By(c inspect.Contender) string {
	if c.By == inspect.Curator {
		return "docent or curator"
	}
	return string(c.By)
}

// Holders names the lock's first holder and says how many others there are.
func Holders(l inspect.Lock) string {
	all := l.Holders()
	switch len(all) {
	case 0:
		return "-"
	case 1:
		return Who(all[0])
	}
	return fmt.Sprintf("%s +%d", Who(all[0]), len(all)-1)
}

// A Row is what a table shows of a lock, and sorts it by.
type Row struct {
	Holders, Waiting int
	Held, Longest    time.Time // since when the oldest holder holds and waiter waits; zero for none that was read
}

// RowOf returns the row of the lock.
func RowOf(l *inspect.Lock) Row {
	var r Row
	for i := range l.Contenders {
		c := &l.Contenders[i]
		switch c.State {
		case inspect.Holds:
			r.Holders, r.Held = r.Holders+1, Earlier(r.Held, c.Created)
		case inspect.Waits:
			r.Waiting, r.Longest = r.Waiting+1, Earlier(r.Longest, c.Created)
		case inspect.Unknown: // it is in the queue
		}
	}
	return r
}

// Earlier returns the earlier time. Zero is none.
func Earlier(a, b time.Time) time.Time {
	if EarliestFirst(b, a) < 0 {
		return b
	}
	return a
}

// EarliestFirst orders times: the earliest first, and no time last.
func EarliestFirst(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}

// Session returns the id as ZooKeeper's servers write it.
func Session(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

// AlsoSession returns the session as it follows [Who], and "" if that has named it.
func AlsoSession(c inspect.Contender) string {
	id := "session " + Session(c.Session)
	if Who(c) == id {
		return ""
	}
	return ", " + id
}

// Side names how a contender holds or wants the lock.
func Side(c inspect.Contender) string {
	if c.Side == inspect.Alone {
		return "lock"
	}
	return string(c.Side)
}
