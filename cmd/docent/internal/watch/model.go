package watch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/change"
	"github.com/docent-go/docent/cmd/docent/internal/cli"
	"github.com/docent-go/docent/cmd/docent/internal/show"
)

// recentMax is how many events the screen keeps.
const recentMax = 50

// A page is what the screen shows.
type page int

const (
	onTable page = iota // all locks
	onQueue             // the contenders of one lock
	onGraph             // the waiters, and the contenders in front of them
	onHelp
)

// An order is how the table is sorted. Each has its greatest first, but for byPath.
type order int

const (
	byWait order = iota
	byHold
	byWaiters
	byPath
	orders
)

// String names the order.
func (o order) String() string {
	return [...]string{"longest wait", "longest hold", "most waiters", "path"}[o]
}

// A Model is the screen, for Bubble Tea. Its methods send nothing and wait for nothing.
type Model struct {
	Color bool
	Err   error // why it has ended, nil if the user has quit

	// Run returns what runs docent with the arguments on the terminal. Its message is an [Outcome].
	Run func(args ...string) tea.Cmd

	views  map[string]inspect.View // by root
	recent []change.Event          // the latest last
	now    time.Time
	size   tea.WindowSizeMsg

	page      page
	order     order
	find      string   // text that the table's rows have
	finding   bool     // the user types find
	selected  string   // path of a lock; the first row if it has no row
	contender string   // the selected one of the queue, by its znode: no other takes its place when it has gone
	question  string   // that y answers
	agreed    []string // what to run if the user says yes to question
	said      string   // until the next key
	top       int      // the first line that the graph or the help shows
}

// NewModel returns a screen without a lock.
func NewModel(now time.Time, color bool) *Model {
	return &Model{Color: color, views: map[string]inspect.View{}, now: now}
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
	view := tea.NewView(m.render())
	view.AltScreen = true
	return view
}

// Update takes a message: a key, a size, a second, or a view of the locks.
func (m *Model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.size = message
	case tick:
		m.now = time.Time(message)
		return m, nextTick()
	case update:
		if err := unreadable(message.view); err != nil {
			m.Err = cmp.Or(m.Err, err)
			return m, tea.Quit
		}
		m.see(message)
	case Outcome:
		m.said = string(message)
	case tea.KeyPressMsg:
		return m, m.key(message)
	}
	return m, nil
}

func (m *Model) see(u update) {
	m.recent = append(m.recent, u.events...)
	m.recent = m.recent[max(0, len(m.recent)-recentMax):]
	m.views[u.root] = u.view
	if u.view.At.After(m.now) {
		m.now = u.view.At
	}
}

// An entry is a lock with what the table is sorted by.
type entry struct {
	inspect.Lock
	show.Row
}

// all returns the locks of all views.
func (m *Model) all() []entry {
	var all []entry
	for _, view := range m.views {
		for _, l := range view.Locks {
			all = append(all, entry{l, show.RowOf(&l)})
		}
	}
	return all
}

// entries returns the rows of the table.
func (m *Model) entries() []entry {
	find := strings.ToLower(m.find)
	found := slices.DeleteFunc(m.all(), func(e entry) bool { return !e.has(find) })
	slices.SortFunc(found, func(a, b entry) int {
		wait, hold := show.EarliestFirst(a.Longest, b.Longest), show.EarliestFirst(a.Held, b.Held)
		path := strings.Compare(a.Path, b.Path)
		switch m.order {
		case byHold:
			return cmp.Or(hold, path)
		case byWaiters:
			return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), path)
		case byPath:
			return path
		}
		return cmp.Or(wait, hold, path)
	})
	return found
}

// has reports whether the path or a contender of the lock has the text, which is in lower case.
func (e *entry) has(find string) bool {
	return strings.Contains(strings.ToLower(e.Path), find) ||
		slices.ContainsFunc(e.Contenders, func(c inspect.Contender) bool {
			return strings.Contains(strings.ToLower(show.Who(c)), find)
		})
}

// row returns the index of the selected row.
func (m *Model) row(entries []entry) int {
	return max(0, slices.IndexFunc(entries, func(e entry) bool { return e.Path == m.selected }))
}

// shown returns the lock whose queue is shown, and the index of its selected contender, -1 if it has gone.
func (m *Model) shown() (inspect.Lock, int) {
	for _, e := range m.all() {
		if e.Path == m.selected {
			return e.Lock, slices.IndexFunc(e.Contenders, func(c inspect.Contender) bool { return c.Znode == m.contender })
		}
	}
	return inspect.Lock{Path: m.selected}, -1
}

// status returns the state of the views: the worst one.
func (m *Model) status() inspect.View {
	worst := inspect.View{State: inspect.Current}
	for _, view := range m.views {
		if view.State != inspect.Current {
			worst = view
		}
	}
	if len(m.views) == 0 {
		worst.State = inspect.Connecting
	}
	return worst
}

// onScreen reports whether the table can be shown: input and output are a terminal that can move its cursor.
func (w *watcher) onScreen() bool {
	return w.app.Settings().Output != cli.JSONLines && w.app.Getenv("TERM") != "dumb" &&
		cli.Terminal(w.app.In) && cli.Terminal(w.app.Out)
}

// screen shows the table until the user quits or ctx ends. The terminal is as before when it returns.
func (w *watcher) screen(ctx context.Context, followers []*Follower) error {
	model := NewModel(time.Now(), w.app.Color())
	model.Run = func(args ...string) tea.Cmd { return w.docent(ctx, args...) }
	program := tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(w.app.In), tea.WithOutput(w.app.Out),
		tea.WithEnvironment(w.app.Env), tea.WithoutSignalHandler())
	feeding, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup // the goroutine of the feed
	wg.Go(func() {
		_ = feed(feeding, followers, func(u update) error { program.Send(u); return nil }) // no error is returned
	})
	_, err := program.Run()
	cancel()
	wg.Wait()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		err = nil // run reports that ctx has ended
	}
	return errors.Join(err, model.Err)
}
