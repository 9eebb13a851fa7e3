package page

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docent-go/docent/cmd/docent/inspect"
	"github.com/docent-go/docent/cmd/docent/internal/show"
	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
)

// A counter counts by label. Its methods may be called concurrently.
type counter struct {
	mu sync.Mutex // guards by
	by map[string]int
}

func (c *counter) add(label string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = make(map[string]int)
	}
	c.by[label]++
}

func (c *counter) copy() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.by)
}

// The bounds of the series with a lock's path as a label.
const (
	maxSeries = 200 // locks, those first that matter most
	maxLabel  = 512 // bytes of a path; a path that is cut could be that of two locks
)

// metrics returns the state of the locks in Prometheus' text format.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	b, _ := s.hub.board()
	var m metricsText
	kinds := map[string]int{}
	var hold, wait time.Time // of the oldest
	for _, e := range b.entries {
		kinds[string(e.lock.Kind)]++
		hold, wait = show.Earlier(hold, e.Held), show.Earlier(wait, e.Longest)
	}
	m.family("docent_locks", "gauge", "Locks below the root, by kind.", "kind", kinds)
	m.gauge("docent_locks_held", "Locks that have a holder.", float64(b.held))
	m.gauge("docent_lock_waiters", "Contenders that wait.", float64(b.waiting))
	m.gauge("docent_lock_deadlocks", "Deadlocks that are certain.", float64(b.dead))
	m.gauge("docent_lock_oldest_hold_seconds", "Age of the oldest holder's znode.", age(hold))
	m.gauge("docent_lock_oldest_wait_seconds", "Age of the oldest waiter's znode.", age(wait))
	m.perLock(b)
	m.gauge("docent_lock_left_out_znodes", "Znodes that --max leaves out.", float64(b.view.LeftOut))
	m.gauge("docent_lock_unread_paths", "Paths that could not be read.", float64(len(b.view.Unread)))
	m.gauge("docent_view_live", "1 if the view follows the ensemble.", map[bool]float64{true: 1}[b.live()])
	m.gauge("docent_view_timestamp_seconds", "When the view was last confirmed.", float64(millis(b.view.At))/1e3)
	m.gauge("docent_page_streams", "Open pages.", float64(len(s.streams)))
	m.family("docent_page_refused_total", "counter", "Requests that were refused, by reason.", "reason", s.refused.copy())
	m.family("docent_page_revocations_total", "counter", "Requests to release that the page made, by outcome.", "outcome", s.revoked.copy())
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = io.WriteString(w, m.String()) // an error means that the client has gone
}

// A metricsText is text in Prometheus' format.
type metricsText struct{ strings.Builder }

func (m *metricsText) head(name, kind, help string) {
	fmt.Fprintf(m, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (m *metricsText) gauge(name, help string, v float64) {
	m.head(name, "gauge", help)
	fmt.Fprintf(m, "%s %g\n", name, v)
}

// perLock writes the series of the locks that matter most.
func (m *metricsText) perLock(b *board) {
	var chosen []*entry
	seen := make(map[string]bool)
	for _, e := range b.matters() {
		label := labelText(e.lock.Path)
		if len(chosen) < maxSeries && len(e.lock.Path) <= maxLabel && !seen[label] {
			seen[label] = true
			chosen = append(chosen, e)
		}
	}
	series := func(name, help string, of func(*entry) float64) {
		m.head(name, "gauge", help)
		for _, e := range chosen {
			fmt.Fprintf(m, "%s{lock=%s,kind=%s} %g\n", name, labelText(e.lock.Path), labelText(string(e.lock.Kind)), of(e))
		}
	}
	series("docent_lock_holders", "Contenders that hold the lock.", func(e *entry) float64 { return float64(e.Holders) })
	series("docent_lock_waiting", "Contenders that wait for the lock.", func(e *entry) float64 { return float64(e.Waiting) })
	series("docent_lock_longest_wait_seconds", "Age of the lock's oldest waiter's znode, 0 for none.", func(e *entry) float64 { return age(e.Longest) })
	m.gauge("docent_lock_series_left_out", "Locks without series of their own.", float64(len(b.entries)-len(chosen)))
}

// labelText returns the value of a label, quoted.
func labelText(value string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(value, "\uFFFD"))
	return `"` + escaped + `"`
}

func (m *metricsText) family(name, kind, help, label string, values map[string]int) {
	m.head(name, kind, help)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(m, "%s{%s=%s} %d\n", name, label, labelText(key), values[key])
	}
}

func age(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(0, time.Since(t).Seconds())
}

// unnamed is the type of an error that has no name.
const unnamed = "_OTHER"

// health replies 200 while the page follows the ensemble, else 503 with the reason. It needs no token,
// because probes send none, and names no host and no path.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	b, _ := s.hub.board()
	status := http.StatusServiceUnavailable
	if b.live() {
		status = http.StatusOK
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, healthOf(b.view)+"\n") // an error means that the client has gone
}

func healthOf(view inspect.View) string {
	text := string(view.State)
	if view.State == inspect.Stale {
		text += " since " + view.Since.UTC().Format(time.RFC3339)
	}
	switch fault := rootFault(view); {
	case fault != "":
		return fmt.Sprintf("%s: the root can't be read: %s", text, fault)
	case view.State == inspect.Scanning:
	case view.Cause != nil && zktel.ErrorType(view.Cause) != unnamed:
		return text + ": " + zktel.ErrorType(view.Cause)
	}
	return text
}

// rootFault returns the kind of error for which the root can't be read, "" if that is not why the view is
// not current.
func rootFault(view inspect.View) string {
	for _, fault := range []error{framework.ErrNoAuth, framework.ErrTooLarge, framework.ErrNotGzip} {
		if view.State != inspect.Current && errors.Is(view.Cause, fault) {
			return zktel.ErrorType(view.Cause)
		}
	}
	return ""
}
