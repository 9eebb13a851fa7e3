package watch_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/watch"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares the text with the golden file of that name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		must.OK(t, os.WriteFile(file, []byte(got+"\n"), 0o600))
		return
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got+"\n" {
		t.Errorf("%s: got\n%s\nwant\n%s (%v)", name, got, want, err)
	}
}

// A stand is a screen of one directory.
type stand struct {
	*watch.Model
	follower *watch.Follower
	quit     bool
	ran      []string // the commands that were run
}

func newStand(width, height int) *stand {
	s := &stand{Model: watch.NewModel(noon, false), follower: watch.NewFollower("/", nil)}
	s.Run = func(args ...string) tea.Cmd {
		s.ran = append(s.ran, strings.Join(args, " "))
		return func() tea.Msg { return watch.Outcome("asked") }
	}
	s.take(tea.WindowSizeMsg{Width: width, Height: height})
	return s
}

func (s *stand) take(message tea.Msg) {
	_, cmd := s.Update(message)
	if key, ok := message.(tea.KeyPressMsg); cmd != nil && ok {
		s.quit = key.String() == "q" || key.String() == "ctrl+c"
	}
}

// press presses keys: by their names, else each character.
func (s *stand) press(keys ...string) {
	codes := map[string]tea.Key{
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
		"backspace": {Code: tea.KeyBackspace}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
	}
	for _, name := range keys {
		if key, special := codes[name]; special {
			s.take(tea.KeyPressMsg(key))
			continue
		}
		for _, r := range name {
			s.take(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
}

func (s *stand) show(after time.Duration, locks ...inspect.Lock) {
	s.take(watch.UpdateOf(s.follower, viewOf(inspect.Current, noon.Add(after), locks...)))
}

func (s *stand) text() string { return s.View().Content }

// full returns a screen with locks of all sorts, hostile names included.
func full(width, height int) *stand {
	s := newStand(width, height)
	hostile := queue("/locks/\x1b[31mred\u202e"+strings.Repeat("x", 12), "a")
	hostile.Contenders[0].Meta.Owner = "wide 漢字 \r\n\x07" + strings.Repeat("o", 90)
	s.show(0, queue("/locks/report", "b", "c", "d"), queue("/locks/import", "e"))
	s.show(time.Minute, queue("/locks/report", "c", "d!"), queue("/locks/zone", "f", "g"), hostile)
	return s
}

func TestRender(t *testing.T) {
	t.Parallel()
	for _, width := range []int{80, 120} {
		for page, keys := range map[string][]string{
			"table": nil, "queue": {"enter"}, "graph": {"g"}, "help": {"?"}, "find": {"/", "rep"}, "found": {"/", "rep", "enter", "s"},
		} {
			s := full(width, 24)
			s.press(keys...)
			golden(t, fmt.Sprintf("%s-%d", page, width), s.text())
		}
	}
	s := full(80, 24)
	view := viewOf(inspect.Stale, noon.Add(time.Minute))
	view.Cause = errors.New("no \x1bconnection")
	s.take(watch.UpdateOf(s.follower, view))
	golden(t, "stale-80", s.text())
	golden(t, "empty-80", newStand(80, 24).text())
}

// No screen is wider or higher than the terminal, and no foreign text moves its cursor.
func TestRender_fits(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"", "g", "?", "/rep", "r"} {
		for _, color := range []bool{false, true} {
			for width := range 130 {
				for _, height := range []int{0, 1, 2, 5, 10, 17, 18, 40} {
					s := full(width, height)
					s.Color = color
					s.press(keys)
					lines := strings.Split(s.text(), "\n")
					if len(lines) > max(height, 1) {
						t.Fatalf("%d by %d: %d lines", width, height, len(lines))
					}
					for _, line := range lines {
						if lipgloss.Width(line) > width || strings.Contains(line, "\x1b[31m") || strings.ContainsAny(line, "\r\x07\u202e") {
							t.Fatalf("%d by %d: %q", width, height, line)
						}
					}
				}
			}
		}
	}
}

func TestModel_keys(t *testing.T) {
	t.Parallel()
	// The longest wait is that of d, at /locks/report, then g at /locks/zone.
	for name, test := range map[string]struct {
		keys []string
		want string
		not  string
	}{
		"the longest wait is selected":   {nil, "> /locks/report", "Keys"},
		"down selects the next":          {[]string{"down"}, "> /locks/zone", ""},
		"j and k do too":                 {[]string{"j", "j", "k"}, "> /locks/zone", ""},
		"up stops at the top":            {[]string{"up", "up"}, "> /locks/report", ""},
		"the selection stays in another": {[]string{"down", "s", "s", "s"}, "> /locks/zone", ""},
		"s sorts by the longest hold":    {[]string{"s"}, "sorted by longest hold", ""},
		"s comes round":                  {[]string{"s", "s", "s", "s"}, "sorted by longest wait", ""},
		"/ finds a path":                 {[]string{"/", "ZONE"}, "> /locks/zone", "mutex      host:17 c"},
		"/ finds an owner":               {[]string{"/", "17 f"}, "> /locks/zone", "mutex      host:17 c"},
		"esc drops the text":             {[]string{"/", "zone", "esc"}, "> /locks/report", "with"},
		"enter keeps the text":           {[]string{"/", "zone", "enter"}, `with "zone"`, "zone_"},
		"esc drops the kept text":        {[]string{"/", "zone", "enter", "esc"}, "> /locks/report", "with"},
		"backspace":                      {[]string{"/", "zonk", "backspace", "backspace"}, "/zo_", ""},
		"backspace without text":         {[]string{"/", "backspace"}, "/_", ""},
		"q is text while finding":        {[]string{"/", "q"}, "/q_", ""},
		"enter opens the queue":          {[]string{"down", "enter"}, "/locks/zone  mutex", "LONGEST"},
		"enter returns":                  {[]string{"enter", "enter"}, "LONGEST", ""},
		"esc returns":                    {[]string{"g", "esc"}, "LONGEST", ""},
		"g shows who waits":              {[]string{"g"}, "host:17 d waits for /locks/report", "LONGEST"},
		"g returns":                      {[]string{"g", "g"}, "LONGEST", ""},
		"? shows the keys":               {[]string{"?"}, "Keys", "LONGEST"},
		"down scrolls":                   {[]string{"?", "down"}, "find locks by", "up, k"},
		"down stops at the end":          {append([]string{"?"}, strings.Split(strings.Repeat("j", 99), "")...), "released: ", "Ctrl-C"},
	} {
		s := full(120, 24)
		s.press(test.keys...)
		if text := s.text(); !strings.Contains(text, test.want) || test.not != "" && strings.Contains(text, test.not) || s.quit {
			t.Errorf("%s: not %q, or %q, in\n%s", name, test.want, test.not, text)
		}
	}
	none := newStand(80, 24)
	if none.press("g"); !strings.Contains(none.text(), "no contender waits") {
		t.Errorf("the graph of no lock:\n%s", none.text())
	}
	for key, interrupted := range map[string]bool{"q": false, "ctrl+c": true} {
		s := full(80, 24)
		s.press(key)
		s.show(time.Minute) // a view that comes before the screen has ended
		if !s.quit || (s.Err != nil) != interrupted {
			t.Errorf("%s: quit %v, error %v", key, s.quit, s.Err)
		}
	}
}

// r and b run commands for the contender that the screen marks, and never for one that has taken its place.
func TestModel_acts(t *testing.T) {
	t.Parallel()
	const holder, waiter = "/locks/report/c", "/locks/report/d"
	breaks := func(znode string) string {
		return fmt.Sprintf("break %s --session=0x7 --czxid=%d", znode, znode[len(znode)-1])
	}
	for name, test := range map[string]struct {
		keys []string
		ran  string
		want string // on the screen
	}{
		"r asks first":                   {[]string{"r"}, "", "y: ask host:17 c to release /locks/report;"},
		"y agrees":                       {[]string{"r", "y"}, "revoke " + holder + " --yes", "sorted by"},
		"another key does not":           {[]string{"r", "n"}, "", "nothing was done"},
		"nor does q, which quits later":  {[]string{"r", "q"}, "", "nothing was done"},
		"y alone is no key":              {[]string{"y"}, "", "sorted by"},
		"y again is none either":         {[]string{"r", "n", "y"}, "", "sorted by"},
		"b breaks the holder":            {[]string{"b"}, breaks(holder), ""},
		"b in the queue":                 {[]string{"enter", "b"}, breaks(holder), ""},
		"b of a waiter":                  {[]string{"enter", "down", "b"}, breaks(waiter), "> waits"},
		"r of a waiter":                  {[]string{"enter", "down", "r", "y"}, "revoke " + waiter + " --yes", ""},
		"r in the graph":                 {[]string{"g", "r"}, "", "no lock is selected"},
		"b in the graph":                 {[]string{"g", "b"}, "", "no lock is selected"},
		"r and b are text while finding": {[]string{"/", "rb"}, "", "/rb_"},
	} {
		s := full(120, 24)
		s.press(test.keys...)
		if text := s.text(); strings.Join(s.ran, "; ") != test.ran || !strings.Contains(text, test.want) || s.quit {
			t.Errorf("%s: ran %q; %q is not in\n%s", name, s.ran, test.want, text)
		}
	}

	s := full(120, 24) // the holder of the queue releases
	s.press("enter")
	s.show(2*time.Minute, queue("/locks/report", "d"))
	s.press("b", "r")
	if text := s.text(); len(s.ran) > 0 || !strings.Contains(text, "no contender is selected") {
		t.Errorf("ran %q\n%s", s.ran, text)
	}
	s = full(120, 24) // the holder releases while the question is shown
	s.press("r")
	s.show(2*time.Minute, queue("/locks/report", "d"))
	if s.press("y"); strings.Join(s.ran, "") != "revoke "+holder+" --yes" {
		t.Errorf("ran %q", s.ran)
	}
	s.take(watch.Outcome("asking c"))
	if text := s.text(); !strings.Contains(text, "\nasking c\n") {
		t.Errorf("no outcome in\n%s", text)
	}
	shared := queue("/locks/shared", "a", "b")
	shared.Contenders[1].State = inspect.Holds
	s.show(3*time.Minute, shared)
	s.press("b")
	if text := s.text(); len(s.ran) != 1 || !strings.Contains(text, "the lock has 2 holders") {
		t.Errorf("ran %q\n%s", s.ran, text)
	}
}

// A name that is cut keeps its end, also if a wide character is across the cut.
func TestFitTail(t *testing.T) {
	t.Parallel()
	for width, want := range []string{"", "…", "… ", "…ト", "…ト ", "…スト", "…スト ", "…キスト", "…キスト "} {
		if got := watch.FitTail("日本語テキスト", width); got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
	if got := watch.FitTail("/locks/report", 7); got != "…report" {
		t.Errorf("%q", got)
	}
}

// The time goes on if nothing else does.
func TestModel_shows_the_time(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStand(80, 24)
		s.take(s.Init()())
		if want := time.Now().UTC().Format("15:04:05Z"); !strings.Contains(s.text(), want) || want == "00:00:00Z" {
			t.Errorf("no %s in\n%s", want, s.text())
		}
	})
}

func TestModel_ends_without_permission(t *testing.T) {
	t.Parallel()
	s := newStand(80, 24)
	view := viewOf(inspect.Scanning, noon)
	view.Cause = framework.ErrNoAuth
	_, cmd := s.Update(watch.UpdateOf(s.follower, view))
	if cmd == nil || !errors.Is(s.Err, framework.ErrNoAuth) {
		t.Errorf("command %v, error %v", cmd != nil, s.Err)
	}
}
