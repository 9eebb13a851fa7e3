package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docent-go/docent/recipes/locktel"
)

// A forest is the traces of several services.
type forest struct {
	byID     map[string]span
	children map[string][]span // those of "" are the roots
}

func newForest(services ...[]span) *forest {
	f := &forest{make(map[string]span), make(map[string][]span)}
	for _, spans := range services {
		for _, s := range spans {
			f.byID[s.ID] = s
			f.children[s.Parent] = append(f.children[s.Parent], s)
		}
	}
	for _, spans := range f.children {
		slices.SortFunc(spans, func(a, b span) int { return a.Start.Compare(b.Start) })
	}
	return f
}

// String prints the traces one below the other, with each span below its parent and further to the right.
func (f *forest) String() string {
	var out strings.Builder
	for _, root := range f.children[""] {
		fmt.Fprintf(&out, "trace %s, service %s\n", root.Trace, root.Service)
		f.print(&out, root, "")
		fmt.Fprintln(&out)
	}
	return out.String()
}

// print prints the span behind indent, and what lies below it.
func (f *forest) print(out *strings.Builder, s span, indent string) {
	fmt.Fprintf(out, "%s%s  %v%s\n", indent, s.Name, s.Duration.Round(time.Millisecond/10), remarks(s))
	indent += "  "
	for _, l := range s.Links {
		if l.Kind == "blocked_by" {
			fmt.Fprintf(out, "%s<- blocked by %s\n", indent, f.resolve(l))
		}
	}
	for _, child := range f.children[s.ID] {
		f.print(out, child, indent)
	}
}

// resolve says what a link leads to.
func (f *forest) resolve(l link) string {
	s, ok := f.byID[l.ID]
	if !ok {
		return "a span that was not seen, of trace " + l.Trace
	}
	root := s
	for root.Parent != "" {
		root = f.byID[root.Parent]
	}
	held := ""
	if h, ok := f.heldBy(s); ok {
		held = fmt.Sprintf(", which held it for %v", h.Duration.Round(time.Millisecond/10))
	}
	return fmt.Sprintf("%s of service %s%s: trace %s", root.Name, s.Service, held, s.Trace)
}

// heldBy returns the span of the hold that an acquire led to.
func (f *forest) heldBy(acquire span) (span, bool) {
	for _, s := range f.byID {
		if slices.ContainsFunc(s.Links, func(l link) bool { return l.ID == acquire.ID && l.Kind == "acquired_by" }) {
			return s, true
		}
	}
	return span{}, false
}

// remarks returns what is worth knowing about a span of a lock.
func remarks(s span) string {
	var found []string
	for _, r := range []struct{ key, format string }{
		{locktel.AttrOutcome, "%s"},
		{locktel.AttrQueuePosition, "place %s"},
		{locktel.AttrFencingToken, "fence %s"},
	} {
		if v := s.Attributes[r.key]; v != "" {
			found = append(found, fmt.Sprintf(r.format, v))
		}
	}
	return strings.Join(append([]string{""}, found...), "  ")
}
