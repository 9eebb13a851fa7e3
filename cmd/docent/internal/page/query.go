package page

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/docent-go/docent/cmd/docent/internal/show"
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

// orders are what rows can be sorted by: by how much they matter, by their paths, or by a column and then their paths.
func orders() map[string]func(a, b *entry) int {
	return map[string]func(a, b *entry) int{
		byMatterFirst: nil, // a board has these two orders
		"lock":        nil,
		"held":        func(a, b *entry) int { return show.EarliestFirst(a.Held, b.Held) },
		"waiting":     func(a, b *entry) int { return cmp.Compare(b.Waiting, a.Waiting) },
		"longest":     func(a, b *entry) int { return show.EarliestFirst(a.Longest, b.Longest) },
	}
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
		order: cmp.Or(values.Get("sort"), byMatterFirst), desc: values.Get("desc") == "1",
		open: values.Get("open"), whole: values.Get("whole") == "1", pick: values["pick"],
	}
	var faults []error
	if _, known := orders()[q.order]; !known {
		faults = append(faults, fmt.Errorf("sort %q: must be one of %v", q.order, slices.Sorted(maps.Keys(orders()))))
	}
	if utf8.RuneCountInString(q.find) > maxFind {
		faults = append(faults, fmt.Errorf("find: must have at most %d characters", maxFind))
	}
	if len(q.pick) > maxPick {
		faults = append(faults, fmt.Errorf("pick: must be given at most %d times", maxPick))
	}
	return q, errors.Join(faults...)
}
