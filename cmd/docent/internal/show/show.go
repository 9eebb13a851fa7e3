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

// HeldSince returns when the lock's oldest holder came; zero if there is none.
func HeldSince(l inspect.Lock) time.Time { return Oldest(l.Holders()) }

// Oldest returns when the oldest of the contenders came; zero if none was read.
func Oldest(contenders []inspect.Contender) time.Time {
	var first time.Time
	for _, c := range contenders {
		if c.Read() && (first.IsZero() || c.Created.Before(first)) {
			first = c.Created
		}
	}
	return first
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
