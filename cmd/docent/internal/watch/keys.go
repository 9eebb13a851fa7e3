package watch

import (
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// key does what the key asks for.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	m.Said = ""
	switch {
	case name == "ctrl+c":
		m.Interrupted = true
		return tea.Quit
	case m.Question != "":
		return m.answer(name)
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
	case "r":
		m.revoke()
	case "b":
		return m.breakTarget()
	case "s":
		m.Order = (m.Order + 1) % orders
	case "g":
		m.toggle(Graph)
	case "?":
		m.toggle(Help)
	case "enter":
		m.open()
	case "esc":
		m.back()
	}
	return nil
}

// back shows the table again; if it is shown, the whole table.
func (m *Model) back() {
	if m.Page == Table {
		m.Find = ""
	}
	m.turn(Table)
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

// move selects another row of the table or of the queue, or scrolls another page.
func (m *Model) move(by int) {
	switch m.Page {
	case Table:
		if entries := m.entries(); len(entries) > 0 {
			m.Selected = entries[min(max(0, m.selected(entries)+by), len(entries)-1)].Path
		}
	case Queue:
		if l, at := m.shown(); len(l.Contenders) > 0 {
			m.Contender = l.Contenders[min(max(0, at+by), len(l.Contenders)-1)].Znode
		}
	case Graph, Help:
		m.Top = min(max(0, m.Top+by), max(0, m.length()-1))
	}
}

// length returns how many lines a page that scrolls has, without its header.
func (m *Model) length() int {
	if m.Page == Graph {
		return len(m.graph(m.width)) - 1
	}
	return len(help()) - 1
}

// open shows the queue of the selected lock with its first contender selected, or the table again.
func (m *Model) open() {
	entries := m.entries()
	if m.Page != Table || len(entries) == 0 {
		m.turn(Table)
		return
	}
	l := entries[m.selected(entries)].Lock
	m.Selected, m.Contender = l.Path, ""
	if len(l.Contenders) > 0 {
		m.Contender = l.Contenders[0].Znode
	}
	m.turn(Queue)
}

func (m *Model) toggle(page Page) {
	if m.Page == page {
		page = Table
	}
	m.turn(page)
}

func (m *Model) turn(page Page) { m.Page, m.Top = page, 0 }
