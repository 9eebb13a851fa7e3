package watch

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
)

const (
	frameLines  = 4  // all but the page and the events: summary, prompt, blank line, keys
	recentLines = 5  // a blank line and the latest events
	tallEnough  = 18 // for the latest events
)

// render returns the screen: as many lines as it is high, none of them wider than it.
func (m *Model) render() string {
	room, recent := m.size.Height-frameLines, 0
	if m.size.Height >= tallEnough && m.page != onHelp {
		room, recent = room-recentLines, recentLines
	}
	lines := append([]string{m.summary(), m.prompt()}, padded(m.body(room), room)...)
	if recent > 0 {
		lines = append(lines, padded(m.latest(), recent)...)
	}
	lines = append(lines, "", "/ find  s sort  enter queue  g graph  r revoke  b break  ? help  q quit")
	lines = lines[:min(len(lines), max(m.size.Height, 0))]
	for i, line := range lines {
		lines[i] = strings.TrimRight(fit(line, m.size.Width), " ")
	}
	return strings.Join(lines, "\n")
}

// padded returns n lines: the first of them, or blank ones in addition.
func padded(lines []string, n int) []string {
	n = max(n, 0)
	lines = lines[:min(len(lines), n)]
	return append(slices.Clip(lines), make([]string, n-len(lines))...)
}

func (m *Model) summary() string {
	held, waiting, all := 0, 0, m.all()
	for _, e := range all {
		waiting += e.Waiting
		if e.Row.Holders > 0 {
			held++
		}
	}
	view := m.status()
	state := string(view.State)
	if view.State == inspect.Stale {
		state = "STALE for " + show.Age(m.now, view.Since)
		if view.Cause != nil {
			state += ": " + cli.Safe(view.Cause.Error())
		}
	}
	out := 0
	for _, v := range m.views {
		out += v.LeftOut
	}
	if out > 0 {
		state += "  (" + leftOut(out) + ")"
	}
	return fmt.Sprintf("docent  %s  %s, %d held, %d waiting  %s",
		m.now.UTC().Format("15:04:05Z"), show.Counted(len(all), "lock"), held, waiting, state)
}

func (m *Model) prompt() string {
	switch {
	case m.question != "":
		return m.question
	case m.said != "":
		return m.said
	case m.finding:
		return "/" + cli.Safe(m.find) + "_"
	case m.page != onTable:
		return ""
	case m.find != "":
		return "sorted by " + m.order.String() + ", with " + strconv.Quote(cli.Safe(m.find))
	}
	return "sorted by " + m.order.String()
}

// body returns the lines of the page with their header. Those beyond room are not shown.
func (m *Model) body(room int) []string {
	switch m.page {
	case onQueue:
		return m.queue(room)
	case onGraph:
		return m.scrolled(m.graph())
	case onHelp:
		return m.scrolled(help())
	}
	return m.table(room)
}

// scrolled returns the header of the lines, and those from top on.
func (m *Model) scrolled(lines []string) []string {
	rest := lines[1:]
	return slices.Concat([]string{m.bold(lines[0])}, rest[min(m.top, len(rest)):])
}

// around returns the header and those of n rows for which there is room, the selected one among them.
func (m *Model) around(header string, n, selected, room int, row func(i int) string) []string {
	lines := []string{m.bold(header)}
	for i := max(0, selected-max(room-2, 0)); i < n && len(lines) < room; i++ {
		line := "  " + row(i)
		if i == selected {
			line = m.bold("> " + row(i))
		}
		lines = append(lines, line)
	}
	return lines
}

func (m *Model) latest() []string {
	lines := []string{""}
	for _, e := range m.recent[max(0, len(m.recent)-recentLines+1):] {
		lines = append(lines, Line(e))
	}
	return lines
}

// fit returns the text with just this width: cut at its end, or with blanks.
func fit(text string, width int) string {
	text = ansi.Truncate(text, max(width, 0), "…")
	return text + strings.Repeat(" ", max(0, width-lipgloss.Width(text)))
}

// fitTail returns the text with just this width: cut at its beginning, or with blanks.
func fitTail(text string, width int) string {
	if over := lipgloss.Width(text) - width; over > 0 && width > 0 {
		tail := ansi.TruncateLeft(text, over+1, "")
		if lipgloss.Width(tail) >= width { // a wide character is across the cut
			tail = ansi.TruncateLeft(text, over+2, "")
		}
		text = "…" + tail
	}
	return fit(text, width)
}

// fixed is the width of the table's columns besides LOCK and HOLDER, with all gaps and the mark.
const fixed = 2 + 2 + 9 + 2 + 2 + 7 + 2 + 7 + 2 + 7

func (m *Model) table(room int) []string {
	free := max(0, m.size.Width-fixed)
	left := free * 11 / 20
	row := func(lock, kind, holder, held, waiting, longest string) string {
		return fmt.Sprintf("%s  %s  %s  %7s  %7s  %7s", fitTail(lock, left), fit(kind, 9), fit(holder, free-left), held, waiting, longest)
	}
	entries := m.entries()
	header := "  " + row("LOCK", "KIND", "HOLDER", "FOR", "WAITING", "LONGEST")
	return m.around(header, len(entries), m.row(entries), room, func(i int) string {
		e := entries[i]
		return row(cli.Safe(e.Path), string(e.Kind), show.Holders(e.Lock), show.Since(m.now, e.Held), strconv.Itoa(e.Waiting), show.Since(m.now, e.Longest))
	})
}

// queue returns the selected lock and its contenders.
func (m *Model) queue(room int) []string {
	l, at := m.shown()
	if len(l.Contenders) == 0 {
		return []string{m.bold(cli.Safe(l.Path)), "no contender"}
	}
	const other = 2 + 7 + 2 + 9 + 2 + 2 + 7 + 2
	free := max(0, m.size.Width-other)
	return m.around(fmt.Sprintf("%s  %s", cli.Safe(l.Path), l.Kind), len(l.Contenders), at, room, func(i int) string {
		c := l.Contenders[i]
		state, age := string(c.State), "?"
		if c.Revoked {
			state += "!"
		}
		if c.Read() {
			age = show.Age(m.now, c.Created)
		}
		return fmt.Sprintf("%s  %s  %s  %7s  %s", fit(state, 7), fit(show.Side(c), 9),
			fit(show.Who(c), free/2), age, fitTail(cli.Safe(path.Base(c.Znode)), free-free/2))
	})
}

// graph returns the waiters with the contenders in front of them, the longest wait first.
func (m *Model) graph() []string {
	var edges []inspect.Edge
	for _, view := range m.views {
		edges = append(edges, view.Edges()...)
	}
	slices.SortStableFunc(edges, func(a, b inspect.Edge) int {
		return cmp.Or(show.EarliestFirst(a.Waiter.Created, b.Waiter.Created), cmp.Compare(a.Waiter.Znode, b.Waiter.Znode))
	})
	lines := []string{"waiters, and the contenders in front of them"}
	for _, e := range edges {
		how := "behind"
		if e.Direct {
			how = "held by"
		}
		lines = append(lines, fmt.Sprintf("%s waits for %s (%s) %s %s",
			show.Who(e.Waiter), cli.Safe(e.Lock), show.Age(m.now, e.Waiter.Created), how, show.Who(e.Blocker)))
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
func (m *Model) bold(line string) string {
	if !m.Color {
		return line
	}
	return lipgloss.NewStyle().Bold(true).Render(fit(line, m.size.Width))
}
