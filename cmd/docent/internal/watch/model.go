package watch

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// recentMax is how many events the screen keeps.
const recentMax = 50

// A Model is the screen, for Bubble Tea. Its methods send nothing and wait for nothing.
type Model struct {
	State

	Interrupted bool // by Ctrl-C
	Err         error

	// Run returns what runs docent with the arguments on the terminal. Its message is an [Outcome].
	Run func(args ...string) tea.Cmd

	agreed        []string // what to run if the user says yes to Question
	followers     map[string]*Follower
	width, height int
}

// A tick is a second that has passed: the ages change.
type tick time.Time

func nextTick() tea.Cmd {
	return tea.Tick(time.Second, func(now time.Time) tea.Msg { return tick(now) })
}

// Init begins to count the seconds.
func (m *Model) Init() tea.Cmd { return nextTick() }

// View returns what the terminal shows.
func (m *Model) View() tea.View {
	view := tea.NewView(Render(&m.State, m.width, m.height))
	view.AltScreen = true
	return view
}

// Update takes a message: a key, a size, a second, or a view of the locks.
func (m *Model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case tick:
		m.Now = time.Time(message)
		return m, nextTick()
	case update:
		if m.Err = unreadable(message.view); m.Err != nil {
			return m, tea.Quit
		}
		m.see(message)
	case Outcome:
		m.Said = string(message)
	case tea.KeyPressMsg:
		return m, m.key(message)
	}
	return m, nil
}

func (m *Model) see(u update) {
	m.Recent = append(m.Recent, m.followers[u.root].See(u.view)...)
	m.Recent = m.Recent[max(0, len(m.Recent)-recentMax):]
	m.Views[u.root] = u.view
	if u.view.At.After(m.Now) {
		m.Now = u.view.At
	}
}
