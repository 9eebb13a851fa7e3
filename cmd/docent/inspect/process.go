package inspect

import (
	"fmt"
	"time"
)

// processOf returns a key of the process whose contender it is; "" if the znode does not show that. Host and
// process id may be those of several processes, in containers, so a random id comes first.
func processOf(c Contender) string {
	switch {
	case c.Meta == nil || c.Session == 0 || c.Meta.Handoff:
		return ""
	case c.Meta.Process != "":
		return c.Meta.Process
	case c.Meta.Host != "" && c.Meta.PID > 0:
		return fmt.Sprintf("%s:%d", c.Meta.Host, c.Meta.PID)
	}
	return ""
}

// selfWaitsOfProcesses returns the processes in which an owner waits for a lock that another owner holds, in both
// snapshots: one finding for each lock and process, with the first such waiter. Mostly two goroutines take
// turns, but one whose parent holds the lock waits forever if the parent waits for it. The parties of deadlocks
// that are certain are left out.
func selfWaitsOfProcesses(first, second Snapshot, deadlocks []Finding) []Finding {
	apart, blamed := second.At.Sub(first.At), make(map[string]bool)
	for _, f := range deadlocks {
		for _, e := range f.Edges {
			blamed[e.Waiter.Znode] = blamed[e.Waiter.Znode] || f.Severity == Error
		}
	}
	var found []Finding
	for _, l := range confirmed(first, second) {
		holders, told := make(map[string]Contender), make(map[string]bool)
		for _, c := range l.Contenders {
			process := processOf(c)
			if process == "" {
				continue
			}
			if c.State == Holds {
				holders[process] = c
				continue
			}
			holder, holds := holders[process]
			if !holds || !c.waits() || told[process] || blamed[c.Znode] || PartyOf(holder).ID == PartyOf(c).ID {
				continue
			}
			told[process] = true
			found = append(found, selfWaitOfProcess(l, c, holder, apart))
		}
	}
	return found
}

func selfWaitOfProcess(l Lock, waiter, holder Contender, apart time.Duration) Finding {
	f := Finding{
		Severity: Info, Problem: SelfWait, Path: l.Path, Parties: []Party{PartyOf(waiter), PartyOf(holder)},
		Edges: []Edge{l.edge(waiter, holder)}, Strength: weaker(PartyOf(waiter).Strength, PartyOf(holder).Strength), Confirmed: apart > 0,
	}
	f.Text = "possible: a process waits for a lock that it holds, " + f.seen(apart)
	f.Advice = "If the goroutine that holds it waits for the one that waits, as a parent for its child, neither goes on: " +
		"see the process's goroutines, and make the two one owner. Otherwise they take turns."
	return f
}
