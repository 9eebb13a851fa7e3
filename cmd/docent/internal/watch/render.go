package watch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
)

const (
	frameLines  = 4  // all but the page and the events: summary, prompt, blank line, keys
	recentLines = 5  // a blank line and the latest events
	tallEnough  = 18 // for the latest events
)

// Render returns the screen: as many lines as it is high, none of them wider than it.
func Render(s *State, width, height int) string {
	room, recent := height-frameLines, 0
	if height >= tallEnough && s.Page != Help {
		room, recent = room-recentLines, recentLines
	}
	lines := []string{s.summary(), s.prompt()}
	lines = append(lines, padded(s.page(width, room), room)...)
	if recent > 0 {
		lines = append(lines, padded(s.recent(), recent)...)
	}
	lines = append(lines, "", "/ find  s sort  enter queue  g graph  r revoke  b break  ? help  q quit")
	for i, line := range lines[:min(len(lines), max(height, 0))] {
		lines[i] = strings.TrimRight(fit(line, width), " ")
	}
	return strings.Join(lines[:min(len(lines), max(height, 0))], "\n")
}

// padded returns n lines: the first of them, or blank ones in addition.
func padded(lines []string, n int) []string {
	n = max(n, 0)
	lines = lines[:min(len(lines), n)]
	return append(slices.Clip(lines), make([]string, n-len(lines))...)
}

func (s *State) summary() string {
	held, waiting, all := 0, 0, s.all()
	for _, e := range all {
		waiting += e.Waiting
		if e.Row.Holders > 0 {
			held++
		}
	}
	view := s.status()
	state := string(view.State)
	if view.State == inspect.Stale {
		state = "STALE for " + show.Age(s.Now, view.Since)
		if view.Cause != nil {
			state += ": " + cli.Safe(view.Cause.Error())
		}
	}
	out := 0
	for _, v := range s.Views {
		out += v.LeftOut
	}
	if out > 0 {
		state += "  (" + leftOut(out) + ")"
	}
	return fmt.Sprintf("docent  %s  %s, %d held, %d waiting  %s",
		s.Now.UTC().Format("15:04:05Z"), show.Counted(len(all), "lock"), held, waiting, state)
}

func (s *State) prompt() string {
	switch {
	case s.Question != "":
		return s.Question
	case s.Said != "":
		return s.Said
	case s.Finding:
		return "/" + cli.Safe(s.Find) + "_"
	case s.Page != Table:
		return ""
	case s.Find != "":
		return "sorted by " + s.Order.String() + ", with " + strconv.Quote(cli.Safe(s.Find))
	}
	return "sorted by " + s.Order.String()
}

// page returns the lines of the page with their header. Those beyond room are not shown.
func (s *State) page(width, room int) []string {
	switch s.Page {
	case Queue:
		return s.queue(width, room)
	case Graph:
		return s.window(s.graph(width))
	case Help:
		return s.window(help())
	}
	return s.table(width, room)
}

// window returns the header of the lines, and those from Top on.
func (s *State) window(lines []string) []string {
	rest := lines[1:]
	return slices.Concat(lines[:1], rest[min(s.Top, len(rest)):])
}

func (s *State) recent() []string {
	lines := []string{""}
	for _, e := range s.Recent[max(0, len(s.Recent)-recentLines+1):] {
		lines = append(lines, Line(e))
	}
	return lines
}

// fit returns the text with just this width: cut at its end, or with blanks.
func fit(text string, width int) string {
	if missing := width - lipgloss.Width(text); missing >= 0 {
		return text + strings.Repeat(" ", missing)
	}
	if width <= 0 {
		return ""
	}
	runes := []rune(text)
	for len(runes) > 0 && lipgloss.Width(string(runes)) > width-1 {
		runes = runes[:len(runes)-1]
	}
	return fit(string(runes)+"…", width)
}

// fitTail returns the text with just this width: cut at its beginning, or with blanks.
func fitTail(text string, width int) string {
	if lipgloss.Width(text) <= width || width <= 0 {
		return fit(text, width)
	}
	runes := []rune(text)
	for len(runes) > 0 && lipgloss.Width(string(runes)) > width-1 {
		runes = runes[1:]
	}
	return fit("…"+string(runes), width)
}
