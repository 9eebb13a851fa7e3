package inspect

import (
	"cmp"
	"slices"

	"github.com/docent-go/docent/cmd/docent/internal/scc"
)

// A knot is parties that wait for each other, or one that waits for itself, and those behind them.
type knot struct{ parties, behind []int }

// knots returns the strongly connected parts of the parties that can't go on.
func (g *graph) knots() []knot {
	next := make([][]int, len(g.parties))
	for p := range g.parties {
		if !g.free[p] {
			next[p] = g.next(p)
		}
	}
	var found []knot
	for _, part := range scc.Components(next) {
		if len(part) > 1 || slices.Contains(next[part[0]], part[0]) {
			slices.Sort(part)
			found = append(found, knot{part, behind(part, next)})
		}
	}
	slices.SortFunc(found, func(a, b knot) int { return cmp.Compare(a.parties[0], b.parties[0]) })
	return found
}

// behind returns the parties that wait for the part, directly or not, and are not in it.
func behind(part []int, next [][]int) []int {
	reaches := make([]bool, len(next))
	for _, p := range part {
		reaches[p] = true
	}
	reached := func(p int) bool { return reaches[p] }
	for changed := true; changed; {
		changed = false
		for p := range next {
			if !reaches[p] && slices.ContainsFunc(next[p], reached) {
				reaches[p], changed = true, true
			}
		}
	}
	var found []int
	for p := range next {
		if reaches[p] && !slices.Contains(part, p) {
			found = append(found, p)
		}
	}
	return found
}

// edges returns for each wait of the knot's parties those to other parties of the knot: to the holders
// or, if there is none among them, to the nearest contender ahead.
func (g *graph) edges(k knot) []Edge {
	var found []Edge
	in := make([]bool, len(g.parties))
	for _, party := range k.parties {
		in[party] = true
	}
	for _, party := range k.parties {
		for _, p := range g.waitsOf[party] {
			found = append(found, g.edgesAt(in, p)...)
		}
	}
	return found
}

// edgesAt returns the edges of one wait to the parties that are in the knot.
func (g *graph) edgesAt(in []bool, p place) []Edge {
	l := &g.locks[p.lock]
	waiter := l.Contenders[p.at]
	var direct []Edge
	nearest := -1
	for i := range l.Contenders {
		if i == p.at || !in[g.of[p.lock][i]] || !g.stays(p, i) {
			continue
		}
		switch c := &l.Contenders[i]; {
		case c.State == Holds && (l.Kind == Semaphore || l.blocks(i, p.at)):
			direct = append(direct, l.edge(waiter, *c))
		case i < p.at && l.blocks(i, p.at):
			nearest = i
		}
	}
	if direct == nil && nearest >= 0 {
		return []Edge{l.edge(waiter, l.Contenders[nearest])}
	}
	return direct
}
