package lock_test

import (
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/doctable"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/locktel"
	"github.com/docent-go/docent/testing/zkenv"
)

const observability = "../../docs/observability.md"

// emitted are names, and the attributes that were seen with each.
type emitted map[string]map[string]bool

func (s emitted) add(name string, attributes []attribute.KeyValue) {
	if s[name] == nil {
		s[name] = make(map[string]bool)
	}
	for _, a := range attributes {
		s[name][string(a.Key)] = true
	}
}

func asSet(keys []string) map[string]bool {
	set := make(map[string]bool)
	for _, key := range keys {
		set[key] = true
	}
	return set
}

// TestTheDocumentationNamesWhatLocksEmit lets all kinds of locks go through
// everything, and compares what they emitted with the tables, both ways.
func TestTheDocumentationNamesWhatLocksEmit(t *testing.T) {
	inEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		operator := env.Client(t)
		var services []*service
		for _, k := range observedKinds() {
			for _, s := range scenarios() {
				if s.of != nil && !s.of(k) {
					continue
				}
				a, b := serviceIn(t, env, "a"), serviceIn(t, env, "b")
				services = append(services, a, b)
				s.happen(t, env, k, a, b)
				env.Quiesce()
				must.OK(t, operator.DeleteTree(t.Context(), "/locks")) // another kind is refused where this one's directories are
			}
		}
		checkSpanTables(t, services)
		checkMetricTable(t, services)
		checkLogTable(t, services)
	}, zkenv.Only("what is emitted is the same in all environments", zkenv.Embedded))
}

func checkSpanTables(t *testing.T, services []*service) {
	t.Helper()
	spans := make(emitted)
	outcomes, on := make(map[string]bool), make(emitted)
	for _, s := range services {
		for _, span := range s.spans.GetSpans() {
			if span.InstrumentationScope.Name != locktel.ScopeName {
				continue
			}
			name, _, _ := strings.Cut(span.Name, " ")
			spans.add(name, span.Attributes)
			for _, a := range span.Attributes {
				on.add(string(a.Key), []attribute.KeyValue{attribute.String(name, "")})
				if a.Key == locktel.AttrOutcome {
					outcomes[a.Value.AsString()] = true
				}
			}
		}
	}
	doctable.MustBeSame(t, "spans", doctable.ByCode(t, observability, "Locks", "span"), spans)
	doctable.MustBeSame(t, "outcomes", doctable.ByCode(t, observability, "Locks", "outcome"), outcomes)
	rows := doctable.ByCode(t, observability, "Locks", "span attribute")
	doctable.MustBeSame(t, "attributes of spans", rows, on)
	for key, names := range on {
		if rows[key]["spans"] == "all" {
			doctable.MustBeSame(t, key, spans, names)
		} else {
			doctable.MustBeSame(t, key, asSet(doctable.Code(rows[key]["spans"])), names)
		}
	}
}

func checkMetricTable(t *testing.T, services []*service) {
	t.Helper()
	found, instruments := make(emitted), make(map[string]string)
	for _, s := range services {
		for _, m := range s.measured(t).Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				instruments[m.Name] = "histogram of `" + m.Unit + "`"
				for _, p := range data.DataPoints {
					found.add(m.Name, p.Attributes.ToSlice())
				}
			case metricdata.Sum[int64]:
				instruments[m.Name] = map[bool]string{true: "counter", false: "up-down counter"}[data.IsMonotonic] + " of `" + m.Unit + "`"
				for _, p := range data.DataPoints {
					found.add(m.Name, p.Attributes.ToSlice())
				}
			}
		}
	}
	rows := doctable.ByCode(t, observability, "Locks", "metric")
	doctable.MustBeSame(t, "metrics", rows, found)
	for name, attributes := range found {
		doctable.MustBeSame(t, name, asSet(doctable.Code(rows[name]["attributes"])), attributes)
		if got := rows[name]["instrument"] + " of " + rows[name]["unit"]; got != instruments[name] {
			t.Errorf("%s: documented as %s, is a %s", name, got, instruments[name])
		}
	}
}

func checkLogTable(t *testing.T, services []*service) {
	t.Helper()
	found, levels := make(emitted), make(map[string]string)
	for _, s := range services {
		for _, e := range lockLogs(s) {
			found.add(e.Message, nil)
			for key := range e.ContextMap() {
				if key != locktel.AttrType && key != locktel.AttrPath && key != locktel.AttrName {
					found[e.Message][key] = true
				}
			}
			levels[e.Message] = e.Level.String()
			if e.LoggerName != "zk.lock" {
				t.Errorf("%s: logger %s", e.Message, e.LoggerName)
			}
		}
	}
	rows := doctable.ByCode(t, observability, "Locks", "message")
	doctable.MustBeSame(t, "log lines", rows, found)
	for message, fields := range found {
		doctable.MustBeSame(t, message, asSet(doctable.Code(rows[message]["fields"])), fields)
		if rows[message]["level"] != levels[message] {
			t.Errorf("%s: documented as %s, is %s", message, rows[message]["level"], levels[message])
		}
	}
}

// fromSource returns the first and second group of each match in a file.
func fromSource(t testing.TB, file, pattern string) map[string]string {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	found := make(map[string]string)
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		found[match[1]] = match[2]
	}
	return found
}

// TestTheDocumentationNamesEveryError compares the tables of errors and of reasons with the source, and
// the constants with all tables.
func TestTheDocumentationNamesEveryError(t *testing.T) {
	t.Parallel()
	found := make(map[string]bool)
	const sentinels = `\b(Err\w+)\s+= errtype\.New\("[^"]*", "?(\w+)"?\)`
	kinds := fromSource(t, "lock.go", sentinels)
	for _, file := range []string{
		"../lease/lease.go", "../internal/hold/hold.go", "../internal/waitqueue/queue.go", "../internal/permits/number.go",
		"../semaphore/doc.go", "../counter/doc.go",
	} {
		maps.Copy(kinds, fromSource(t, file, sentinels))
	}
	for name, kind := range kinds {
		if kind == "lostType" {
			kind = zktel.ErrorType(&lock.LostError{Cause: context.Canceled})
		}
		found[kind] = true
		if !slices.Contains(doctable.Code(doctable.ByCode(t, observability, "Locks", "error.type")[kind]["error"]), name) {
			t.Errorf("%s, of the type %s, is not documented", name, kind)
		}
	}
	doctable.MustBeSame(t, "types of errors", doctable.ByCode(t, observability, "Locks", "error.type"), found)

	reasons := map[string]string{"other": ""}
	for name, reason := range fromSource(t, "../internal/telemetry/lock.go", `\{(?:framework|lease)\.(Err\w+), "(\w+)"\}`) {
		reasons[reason] = name
	}
	rows := doctable.ByCode(t, observability, "Locks", "loss reason")
	doctable.MustBeSame(t, "loss reasons", rows, reasons)
	for reason, name := range reasons {
		if got := strings.Join(doctable.Code(rows[reason]["error"]), " "); got != name {
			t.Errorf("%s: documented for %q, is for %q", reason, got, name)
		}
	}
	text := must.Get(os.ReadFile(observability))(t)
	constants := fromSource(t, "../locktel/locktel.go", `\t((?:Attr|Metric)\w+) += "([^"]+)"`)
	for name, value := range constants {
		if !strings.Contains(string(text), "`"+value+"`") {
			t.Errorf("%s, %s, is not in %s", name, value, observability)
		}
	}
	if len(constants) < 15 {
		t.Errorf("found %d constants", len(constants))
	}
}
