package query

import (
	"fmt"
	"time"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/recipes/inspect"
)

// counted returns the number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// age returns how long ago t was, in two units: 4m12s, 3h05m, 2d07h. A t in the future is now.
func age(now, t time.Time) string {
	if t.IsZero() {
		return "?"
	}
	d := max(now.Sub(t), 0).Truncate(time.Second)
	const day = 24 * time.Hour
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

// who names the contender, in text that a terminal can show.
func who(c inspect.Contender) string {
	if !c.Read() {
		return "?"
	}
	return cli.Safe(inspect.PartyOf(c).String())
}

// holders names the lock's first holder and says how many others there are.
func holders(l inspect.Lock) string {
	all := l.Holders()
	switch len(all) {
	case 0:
		return "-"
	case 1:
		return who(all[0])
	}
	return fmt.Sprintf("%s +%d", who(all[0]), len(all)-1)
}

// heldSince returns when the lock's oldest holder came; zero if there is none.
func heldSince(l inspect.Lock) time.Time { return oldest(l.Holders()) }

func oldest(contenders []inspect.Contender) time.Time {
	var first time.Time
	for _, c := range contenders {
		if c.Read() && (first.IsZero() || c.Created.Before(first)) {
			first = c.Created
		}
	}
	return first
}

// session returns the id as ZooKeeper's servers write it.
func session(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

// side names how a contender holds or wants the lock.
func side(c inspect.Contender) string {
	if c.Side == inspect.Alone {
		return "lock"
	}
	return string(c.Side)
}
