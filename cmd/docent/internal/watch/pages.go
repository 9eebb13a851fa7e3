package watch

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"

	"charm.land/lipgloss/v2"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
)

// fixed is the width of the table's columns besides LOCK and HOLDER, with all gaps and the mark.
const fixed = 2 + 2 + 9 + 2 + 2 + 7 + 2 + 7 + 2 + 7

// table returns the header and the rows around the selected one.
func (s *State) table(width, room int) []string {
	free := max(0, width-fixed)
	left := free * 11 / 20
	row := func(mark, lock, kind, holder, held, waiting, longest string) string {
		return fmt.Sprintf("%s %s  %s  %s  %7s  %7s  %7s",
			mark, fitTail(lock, left), fit(kind, 9), fit(holder, free-left), held, waiting, longest)
	}
	lines := []string{s.bold(row(" ", "LOCK", "KIND", "HOLDER", "FOR", "WAITING", "LONGEST"), width)}
	entries := s.entries()
	at := s.selected(entries)
	for i := max(0, at-max(room-2, 0)); i < len(entries) && len(lines) < room; i++ {
		e, mark := entries[i], " "
		if i == at {
			mark = ">"
		}
		line := row(mark, cli.Safe(e.Path), string(e.Kind), show.Holders(e.Lock), show.Since(s.Now, e.Held), strconv.Itoa(e.Waiting), show.Since(s.Now, e.Longest))
		if i == at {
			line = s.bold(line, width)
		}
		lines = append(lines, line)
	}
	return lines
}

// queue returns the selected lock and the contenders around the selected one.
func (s *State) queue(width, room int) []string {
	l, at := s.shown()
	if len(l.Contenders) == 0 {
		return []string{s.bold(cli.Safe(l.Path), width), "no contender"}
	}
	lines := []string{s.bold(fmt.Sprintf("%s  %s", cli.Safe(l.Path), l.Kind), width)}
	const other = 2 + 7 + 2 + 9 + 2 + 2 + 7 + 2
	free := max(0, width-other)
	for i := max(0, at-max(room-2, 0)); i < len(l.Contenders) && len(lines) < room; i++ {
		c, mark := l.Contenders[i], " "
		if i == at {
			mark = ">"
		}
		state := string(c.State)
		if c.Revoked {
			state += "!"
		}
		age := "?"
		if c.Read() {
			age = show.Age(s.Now, c.Created)
		}
		lines = append(lines, fmt.Sprintf("%s %s  %s  %s  %7s  %s", mark, fit(state, 7), fit(show.Side(c), 9),
			fit(show.Who(c), free/2), age, fitTail(cli.Safe(path.Base(c.Znode)), free-free/2)))
	}
	return lines
}

// graph returns the waiters with the contenders in front of them, the longest wait first.
func (s *State) graph(width int) []string {
	var edges []inspect.Edge
	for _, view := range s.Views {
		edges = append(edges, view.Edges()...)
	}
	slices.SortStableFunc(edges, func(a, b inspect.Edge) int {
		return cmp.Or(show.EarliestFirst(a.Waiter.Created, b.Waiter.Created), cmp.Compare(a.Waiter.Znode, b.Waiter.Znode))
	})
	lines := []string{s.bold("waiters, and the contenders in front of them", width)}
	for _, e := range edges {
		how := "behind"
		if e.Direct {
			how = "held by"
		}
		lines = append(lines, fmt.Sprintf("%s waits for %s (%s) %s %s",
			show.Who(e.Waiter), cli.Safe(e.Lock), show.Age(s.Now, e.Waiter.Created), how, show.Who(e.Blocker)))
	}
	if len(edges) == 0 {
		lines = append(lines, "no contender waits")
	}
	return lines
}

func help() []string {
	return []string{
		"Keys",
		"up, k, down, j  select a lock or a contender, or scroll",
		"/               find locks by path, owner or host; enter keeps the text, esc drops it",
		"s               sort by the longest wait, the longest hold, the most waiters or the path",
		"enter           the queue of the selected lock; ! marks a contender that was asked to release",
		"g               the waiters, and the contenders in front of them",
		"r               ask the holder, or the queue's selected contender, to release",
		"b               break: delete its znode, after a typed confirmation",
		"esc             back to the table",
		"?               these keys",
		"q               quit; Ctrl-C does too, with exit code 130",
		"",
		"released: the znode of a holder is gone. gone: that of a waiter, before its turn.",
	}
}

// bold makes the line stand out, on a terminal with colours. It cuts the line first, not its style.
func (s *State) bold(line string, width int) string {
	if !s.Color {
		return line
	}
	return lipgloss.NewStyle().Bold(true).Render(fit(line, width))
}
