package watch

import (
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// key does what the key asks for.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch {
	case name == "ctrl+c":
		m.Interrupted = true
		return tea.Quit
	case m.Finding:
		m.typed(name, k.Text)
		return nil
	case name == "q":
		return tea.Quit
	}
	switch name {
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "/":
		m.turn(Table)
		m.Finding, m.Find = true, ""
	case "s":
		m.Order = (m.Order + 1) % orders
	case "g":
		m.toggle(Graph)
	case "?":
		m.toggle(Help)
	case "enter":
		m.open()
	case "esc":
		if m.Page == Table {
			m.Find = ""
		}
		m.turn(Table)
	}
	return nil
}

// typed takes a key of the text to find.
func (m *Model) typed(name, text string) {
	switch name {
	case "enter":
		m.Finding = false
	case "esc":
		m.Finding, m.Find = false, ""
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(m.Find)
		m.Find = m.Find[:len(m.Find)-size]
	default:
		m.Find += text
	}
}

// move selects another row of the table, or scrolls another page.
func (m *Model) move(by int) {
	if m.Page != Table {
		m.Top = min(max(0, m.Top+by), max(0, m.length()-1))
		return
	}
	entries := m.entries()
	if len(entries) > 0 {
		at := min(max(0, m.selected(entries)+by), len(entries)-1)
		m.Selected = entries[at].Path
	}
}

// length returns how many lines the page has, without its header.
func (m *Model) length() int {
	switch m.Page {
	case Queue:
		return len(m.queue(m.width)) - 1
	case Graph:
		return len(m.graph(m.width)) - 1
	case Table, Help:
	}
	return len(help()) - 1
}

// open shows the queue of the selected lock, or the table again.
func (m *Model) open() {
	entries := m.entries()
	if m.Page != Table || len(entries) == 0 {
		m.turn(Table)
		return
	}
	m.Selected = entries[m.selected(entries)].Path
	m.turn(Queue)
}

func (m *Model) toggle(page Page) {
	if m.Page == page {
		page = Table
	}
	m.turn(page)
}

func (m *Model) turn(page Page) { m.Page, m.Top = page, 0 }
