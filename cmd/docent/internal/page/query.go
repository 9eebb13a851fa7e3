package page

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// A query is what a tab asks to see.
type query struct {
	find    string   // in paths, holders and waiters; lower case
	waiting bool     // only locks with waiters
	order   string   // one of orders
	desc    bool     // the other way round
	open    string   // the lock whose queue is shown, "" for none
	whole   bool     // the queue is not folded
	pick    []string // the locks of the timeline; none is the first rows
}

// byMatterFirst is the default order: see byMatter.
const byMatterFirst = "matter"

// orders are what rows can be sorted by: by how much they matter, or by a column.
func orders() []string { return []string{byMatterFirst, "lock", "held", "waiting", "longest"} }

// isPlain reports whether q asks for all locks in an order that the board has.
func (q query) isPlain() bool {
	return q.find == "" && !q.waiting && !q.desc && (q.order == "lock" || q.order == byMatterFirst)
}

const (
	maxFind = 256
	maxPick = 24
	maxRows = 200
)

// parseQuery returns what is asked for, or all that is wrong with it.
func parseQuery(values url.Values) (query, error) {
	q := query{
		find: strings.ToLower(values.Get("find")), waiting: values.Get("waiting") == "1",
		order: values.Get("sort"), desc: values.Get("desc") == "1",
		open: values.Get("open"), whole: values.Get("whole") == "1", pick: values["pick"],
	}
	if q.order == "" {
		q.order = byMatterFirst
	}
	var faults []error
	if !slices.Contains(orders(), q.order) {
		faults = append(faults, fmt.Errorf("sort %q: must be one of %v", q.order, orders()))
	}
	if utf8.RuneCountInString(q.find) > maxFind {
		faults = append(faults, fmt.Errorf("find: must have at most %d characters", maxFind))
	}
	if len(q.pick) > maxPick {
		faults = append(faults, fmt.Errorf("pick: must be given at most %d times", maxPick))
	}
	return q, errors.Join(faults...)
}
