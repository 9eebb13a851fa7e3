package inspect

import (
	"fmt"
	"slices"
	"time"
)

// Deadlocks returns the parties that wait for each other in both snapshots. It sends no request.
//
// All edges that it uses are in both snapshots, so they existed at the same time, between the two. With
// one snapshot as both arguments nothing is Confirmed: the locks of a snapshot were read one after
// another, so a cycle may be made of waits that never existed together.
//
// A finding is an Error if the parties' identities are exact or named, and none goes on even if one of
// its waits ends. It is a Warning if an owner waits for several locks at once: an owner with several
// goroutines may go on by one of them. It is a Warning, too, if a process has contenders of one owner in
// two sessions, because the older session may end soon. So it is if an owner waits for a semaphore's
// permit and has the others itself: another goroutine often releases them.
//
// A session alone is no owner. A finding with such a party is a Warning if each session may have one
// thread that has acquired all its locks and waits now. It is an Info if a session has several threads
// for certain, because it has contended for something after a wait began: then nothing shows that the
// thread that waits is the one that holds. In any case, a thread has acquired what it holds before it
// waits, and waits for one lock. A session that waits for what it holds itself is an Info, too.
//
// Znodes do not show everything. A deadlock ends if one of the waits has a deadline, or if another
// goroutine of an owner releases. Waits without a znode are not seen: those for an [Exclusive] lock,
// those inside a process, and those for anything else than locks. So no finding does not mean no
// deadlock. If the permits of a semaphore are unknown, its waits are left out.
func Deadlocks(first, second Snapshot) []Finding {
	locks, latest := confirmed(first, second), newestOf(second.Locks)
	apart, several := second.At.Sub(first.At), sessionsOfThreads(second)
	var found []Finding
	blamed := make(map[string]bool) // znodes of the waiters in errors
	for _, certainly := range []bool{true, false} {
		g := newGraph(locks, latest.certain, true)
		if !certainly {
			g = newGraph(locks, possible, false)
		}
		for _, f := range g.findings(certainly, several, apart) {
			if slices.ContainsFunc(f.Edges, latest.mayEnd) {
				f.Advice = "An owner has a newer session: if its process has lost the older one, that ends within the session timeout. " + f.Advice
			}
			known := slices.ContainsFunc(f.Edges, func(e Edge) bool { return blamed[e.Waiter.Znode] })
			if certainly {
				for _, e := range f.Edges {
					blamed[e.Waiter.Znode] = true
				}
			}
			if certainly || !known {
				found = append(found, f)
			}
		}
	}
	return append(found, selfWaitsOfSessions(locks, apart)...)
}

// findings describes the knots. several has the sessions of several threads.
func (g *graph) findings(certainly bool, several map[int64]bool, apart time.Duration) []Finding {
	var found []Finding
	for _, k := range g.knots() {
		edges := g.edges(k)
		if certainly {
			found = append(found, g.finding(k, edges, Error, apart))
			continue
		}
		for _, part := range cycles(edges) {
			severity := Warning
			if slices.ContainsFunc(part, func(e Edge) bool { return isOfThreads(e.Waiter, several) || isOfThreads(e.Blocker, several) }) {
				severity = Info
			}
			found = append(found, g.finding(g.within(k, part), part, severity, apart))
		}
	}
	return found
}

func isOfThreads(c Contender, several map[int64]bool) bool {
	return isBySession(c) && several[c.Session]
}

// within returns the knot of those parties that the edges join. The other ones are behind them.
func (g *graph) within(k knot, edges []Edge) knot {
	joined := make(map[int]bool)
	for _, e := range edges {
		joined[g.index[g.id(e.Waiter)]], joined[g.index[g.id(e.Blocker)]] = true, true
	}
	part := knot{behind: slices.Clone(k.behind)}
	for _, p := range k.parties {
		if joined[p] {
			part.parties = append(part.parties, p)
		} else {
			part.behind = append(part.behind, p)
		}
	}
	return part
}

// finding describes a knot, whose edges are given.
func (g *graph) finding(k knot, edges []Edge, severity Severity, apart time.Duration) Finding {
	f := Finding{Severity: severity, Problem: Deadlock, Edges: edges, Strength: Exact, Confirmed: apart > 0}
	for _, p := range k.parties {
		f.Parties = append(f.Parties, g.parties[p])
		if severity != Error || g.parties[p].Strength != BySession { // else one contender alone
			f.Strength = weaker(f.Strength, g.parties[p].Strength)
		}
	}
	for _, p := range k.behind {
		f.Behind = append(f.Behind, g.parties[p])
	}
	if severity == Error && f.ofPermitsAlone() {
		f.Severity = Warning
	}
	f.describe(apart)
	return f
}

// ofPermitsAlone reports whether an owner waits for itself alone, by a semaphore.
func (f *Finding) ofPermitsAlone() bool {
	return len(f.Parties) == 1 && !slices.ContainsFunc(f.Edges, func(e Edge) bool { return e.Waiter.Side != Permit })
}

func weaker(a, b Strength) Strength {
	order := []Strength{Exact, Named, BySession}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// seen says how often the finding was seen.
func (f *Finding) seen(apart time.Duration) string {
	if f.Confirmed {
		return fmt.Sprintf("seen twice %.1fs apart", apart.Seconds())
	}
	return "seen once: look again to be certain"
}

// describe writes the text and the advice.
func (f *Finding) describe(apart time.Duration) {
	seen := f.seen(apart)
	switch {
	case len(f.Parties) == 1:
		f.Problem, f.Path = SelfWait, f.Edges[0].Lock
		f.Text = "an owner waits for a lock that it holds, " + seen
		if f.Severity != Error {
			f.Text = "possible: " + f.Text
		}
	case f.Severity == Error:
		f.Text = fmt.Sprintf("%d owners wait for each other, %s", len(f.Parties), seen)
	default:
		f.Text = fmt.Sprintf("possible: %d owners wait for each other, %s", len(f.Parties), seen)
	}
	f.Advice = "It ends if one of the waits has a deadline, or if another goroutine of an owner releases. " +
		"To end it, stop one of the processes."
	switch {
	case f.Strength != BySession:
	case f.Severity == Info:
		f.Advice = "A session here has several threads, and nothing shows which of them holds and which waits. " + f.Advice
	default:
		f.Advice = "The znodes show the same process, perhaps not the same goroutine. " + f.Advice
	}
}

// selfWaitsOfSessions returns the sessions that hold a lock and wait for it: mostly two threads.
func selfWaitsOfSessions(locks []Lock, apart time.Duration) []Finding {
	var found []Finding
	for _, l := range locks {
		places := l.places()
		for _, c := range l.Contenders {
			p := PartyOf(c)
			if p.Strength != BySession || !c.waits() {
				continue
			}
			var own []Edge
			for _, znode := range c.WaitsFor {
				if e := l.edge(c, l.at(places, znode)); e.Direct && PartyOf(e.Blocker).ID == p.ID {
					own = append(own, e)
				}
			}
			if own == nil || c.AnyOf && len(own) < len(c.WaitsFor) {
				continue
			}
			f := Finding{
				Severity: Info, Problem: SelfWait, Parties: []Party{p}, Edges: own, Strength: BySession, Confirmed: apart > 0,
			}
			f.describe(apart)
			found = append(found, f)
		}
	}
	return found
}
