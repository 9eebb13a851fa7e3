package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/docent-go/docent/recipes/locktel"
)

// A span is one of a service.
type span struct {
	tracetest.SpanStub
	service string
}

func (s span) id() trace.SpanID { return s.SpanContext.SpanID() }

// A forest is the traces of several services.
type forest struct {
	byID     map[trace.SpanID]span
	children map[trace.SpanID][]span // those of the zero id are the roots
}

func newForest(services ...*service) *forest {
	f := &forest{make(map[trace.SpanID]span), make(map[trace.SpanID][]span)}
	for _, service := range services {
		for _, stub := range service.spans.GetSpans() {
			s := span{stub, service.name}
			f.byID[s.id()] = s
			f.children[s.Parent.SpanID()] = append(f.children[s.Parent.SpanID()], s)
		}
	}
	for _, spans := range f.children {
		slices.SortFunc(spans, func(a, b span) int { return a.StartTime.Compare(b.StartTime) })
	}
	return f
}

// String prints the traces one below the other, with each span below its parent and further to the right.
func (f *forest) String() string {
	var out strings.Builder
	for _, root := range f.children[trace.SpanID{}] {
		fmt.Fprintf(&out, "trace %s, service %s\n", root.SpanContext.TraceID(), root.service)
		f.print(&out, root, "")
		fmt.Fprintln(&out)
	}
	return out.String()
}

// print prints the span behind indent, and what lies below it.
func (f *forest) print(out *strings.Builder, s span, indent string) {
	fmt.Fprintf(out, "%s%s  %v%s\n", indent, s.Name, took(s), remarks(s))
	indent += "  "
	for _, l := range s.Links {
		if kindOf(l) == "blocked_by" {
			fmt.Fprintf(out, "%s<- blocked by %s\n", indent, f.resolve(l))
		}
	}
	for _, child := range f.children[s.id()] {
		f.print(out, child, indent)
	}
}

func took(s span) time.Duration { return s.EndTime.Sub(s.StartTime).Round(time.Millisecond / 10) }

// resolve says what a link leads to.
func (f *forest) resolve(l sdktrace.Link) string {
	s, ok := f.byID[l.SpanContext.SpanID()]
	if !ok {
		return "a span that was not seen, of trace " + l.SpanContext.TraceID().String()
	}
	root := s
	for root.Parent.IsValid() {
		root = f.byID[root.Parent.SpanID()]
	}
	held := ""
	for _, hold := range f.byID { // that the acquire led to
		if slices.ContainsFunc(hold.Links, func(l sdktrace.Link) bool {
			return l.SpanContext.SpanID() == s.id() && kindOf(l) == "acquired_by"
		}) {
			held = fmt.Sprintf(", which held it for %v", took(hold))
		}
	}
	return fmt.Sprintf("%s of service %s%s: trace %s", root.Name, s.service, held, s.SpanContext.TraceID())
}

// kindOf returns what a link of a lock says of the span that it leads to.
func kindOf(l sdktrace.Link) string { return value(l.Attributes, locktel.AttrLinkKind) }

// value returns the value of an attribute as text, "" if there is none.
func value(attributes []attribute.KeyValue, key attribute.Key) string {
	for _, a := range attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// remarks returns what is worth knowing about a span of a lock.
func remarks(s span) string {
	found := ""
	for _, r := range []struct {
		word string
		key  attribute.Key
	}{{"", locktel.AttrOutcome}, {"place ", locktel.AttrQueuePosition}, {"fence ", locktel.AttrFencingToken}} {
		if v := value(s.Attributes, r.key); v != "" {
			found += "  " + r.word + v
		}
	}
	return found
}
