package watch

import (
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/docent-go/docent/cmd/docent/internal/cli"
)

// key does what the key asks for.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	m.said = ""
	switch {
	case name == "ctrl+c":
		m.Err = &cli.ExitError{Code: cli.CodeInterrupted}
		return tea.Quit
	case m.question != "":
		return m.answer(name)
	case m.finding:
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
		m.turn(onTable)
		m.finding, m.find = true, ""
	case "r":
		m.revoke()
	case "b":
		return m.breakTarget()
	case "s":
		m.order = (m.order + 1) % orders
	case "g":
		m.toggle(onGraph)
	case "?":
		m.toggle(onHelp)
	case "enter":
		m.open()
	case "esc":
		m.back()
	}
	return nil
}

// back shows the table again; if it is shown, the whole table.
func (m *Model) back() {
	if m.page == onTable {
		m.find = ""
	}
	m.turn(onTable)
}

// typed takes a key of the text to find.
func (m *Model) typed(name, text string) {
	switch name {
	case "enter":
		m.finding = false
	case "esc":
		m.finding, m.find = false, ""
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(m.find)
		m.find = m.find[:len(m.find)-size]
	default:
		m.find += text
	}
}

// move selects another row of the table or of the queue, or scrolls another page.
func (m *Model) move(by int) {
	switch m.page {
	case onTable:
		if entries := m.entries(); len(entries) > 0 {
			m.selected = entries[min(max(0, m.row(entries)+by), len(entries)-1)].Path
		}
	case onQueue:
		if l, at := m.shown(); len(l.Contenders) > 0 {
			m.contender = l.Contenders[min(max(0, at+by), len(l.Contenders)-1)].Znode
		}
	case onGraph, onHelp:
		m.top = min(max(0, m.top+by), max(0, m.length()-1))
	}
}

// length returns how many lines a page that scrolls has, without its header.
func (m *Model) length() int {
	if m.page == onGraph {
		return len(m.graph()) - 1
	}
	return len(help()) - 1
}

// open shows the queue of the selected lock with its first contender selected, or the table again.
func (m *Model) open() {
	entries := m.entries()
	if m.page != onTable || len(entries) == 0 {
		m.turn(onTable)
		return
	}
	l := entries[m.row(entries)].Lock
	m.selected, m.contender = l.Path, ""
	if len(l.Contenders) > 0 {
		m.contender = l.Contenders[0].Znode
	}
	m.turn(onQueue)
}

func (m *Model) toggle(page page) {
	if m.page == page {
		page = onTable
	}
	m.turn(page)
}

func (m *Model) turn(page page) { m.page, m.top = page, 0 }
