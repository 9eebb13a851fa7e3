package framework_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/doctable"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zkserver"
)

const observability = "../docs/observability.md"

// An output is all that a client told.
type output struct {
	traces  *traces
	metrics map[string]metricdata.Metrics
	logs    []observer.LoggedEntry
}

// observedLife has a client do everything that telemetry tells of.
func observedLife(t *testing.T, env *zkenv.Env) output {
	t.Helper()
	tr, ms, route := newTraces(), newMeters(), env.Route(t)
	core, logs := observer.New(zap.DebugLevel)
	mustCreate(t, env.Client(t), "/app", "")
	var states trail
	ctx := tr.caller(t)
	c := otherPort(t, route, framework.WithNamespace("app"), framework.WithTracerProvider(tr.provider),
		framework.WithMeterProvider(ms.provider), framework.WithLogger(zap.New(core)), framework.WithStateListener(states.add))
	for _, of := range observedCalls(ctx, c) {
		_ = of.call() // a test of its own looks at how they end
	}
	_, _ = c.Config(ctx)
	_, _ = c.Ephemerals(ctx, "/")
	_, _ = c.WhoAmI(ctx)
	_, _ = c.Reconfig(ctx, framework.ConfigChange{Leave: []int64{1}}, framework.AnyVersion)
	route.Cut()
	states.await(t, framework.Connecting, framework.Connected, framework.Suspended, framework.Connected)
	route.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore})
	check(t, last(c.Get(ctx, "/")))
	mustHold(t, c)
	route.Expire(t)
	states.await(t, framework.Connecting, framework.Connected, framework.Suspended, framework.Connected,
		framework.Suspended, framework.Connected, framework.Suspended, framework.Lost, framework.Connected)
	c.OnState(func(framework.StateChange) { panic("a listener's") })
	for range 30 { // so often that not each break is logged
		route.Cut()
		sleep(time.Second)
		must.OK(t, c.AwaitConnected(t.Context()))
	}
	env.Quiesce()
	return output{tr, ms.collect(t), logs.All()}
}

// otherPort returns a client of a server that has not the default port.
func otherPort(t testing.TB, route *zkenv.Route, opts ...framework.Option) *framework.Client {
	t.Helper()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return route.Dial(ctx, network, route.Addr())
	}
	return connect(t, "zookeeper.test:2199", append(opts, framework.WithDialer(dial))...)
}

func TestTheDocumentationNamesWhatTheClientEmits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, env *zkenv.Env) {
		out := observedLife(t, env)
		checkSpanTables(t, out)
		checkMetricTable(t, out)
		checkLoggedLines(t, out)
	}, zkenv.Versions("on others WhoAmI costs the connection", zkserver.DefaultVersion, "3.8.4", "3.9.6"))
}

func checkSpanTables(t *testing.T, out output) {
	t.Helper()
	keys, operations := make(map[string]bool), make(map[string]bool)
	for _, s := range out.traces.spans.GetSpans() {
		for _, a := range s.Attributes {
			keys[string(a.Key)] = true
			if a.Key == zktel.AttrDBOperation {
				operations[a.Value.AsString()] = true
			}
		}
	}
	doctable.MustBeSame(t, "span attribute", doctable.ByCode(t, observability, "Client", "span attribute"), keys)
	doctable.MustBeSame(t, "operation", doctable.ByCode(t, observability, "Client", "operation"), operations)
}

func checkMetricTable(t *testing.T, out output) {
	t.Helper()
	rows := doctable.ByCode(t, observability, "Client", "metric")
	doctable.MustBeSame(t, "metric", rows, out.metrics)
	for name, m := range out.metrics {
		instrument, sets := shape(t, m)
		row := rows[name]
		if row["instrument"] != instrument || !slices.Equal(doctable.Code(row["unit"]), []string{m.Unit}) {
			t.Errorf("metric %s is documented as %s of %s, and is %s of %s", name, row["instrument"], row["unit"], instrument, m.Unit)
		}
		documented, found := make(map[string]bool), make(map[string]bool)
		for _, key := range doctable.Code(row["attributes"]) {
			documented[key] = true
		}
		for _, set := range sets {
			for _, a := range set.ToSlice() {
				found[string(a.Key)] = true
			}
		}
		doctable.MustBeSame(t, "metric "+name+": attribute", documented, found)
	}
}

// shape returns which instrument a metric comes from, and its points' attributes.
func shape(t *testing.T, m metricdata.Metrics) (instrument string, sets []attribute.Set) {
	t.Helper()
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
		return "histogram", sets
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
		if data.IsMonotonic {
			return "counter", sets
		}
		return "observable up-down counter", sets
	}
	t.Errorf("metric %s has data of type %T", m.Name, m.Data)
	return "", nil
}

// checkLoggedLines checks the lines that were logged; which there can be at all,
// TestTheDocumentationNamesEveryLogMessage knows.
func checkLoggedLines(t *testing.T, out output) {
	t.Helper()
	rows, seen := doctable.ByCode(t, observability, "Client", "message"), make(map[string]bool)
	for _, line := range out.logs {
		message := line.Message
		if strings.HasPrefix(message, "wire client: ") {
			message = "wire client: …"
		}
		row, ok := rows[message]
		if !ok || !strings.Contains(row["level"], line.Level.String()) || line.LoggerName != "zk" {
			t.Errorf("logger %s, level %v: %q is documented as %v", line.LoggerName, line.Level, message, row)
		}
		for key := range line.ContextMap() {
			if !slices.Contains(doctable.Code(row["fields"]), key) {
				t.Errorf("%q has the field %s, documented are %s", message, key, row["fields"])
			}
			seen[message+key] = true
		}
		seen[message] = true
	}
	for _, message := range []string{"connection state changed", "attempt failed, there will be another", "a state listener panicked"} {
		for _, key := range append(doctable.Code(rows[message]["fields"]), "") {
			if !seen[message+key] {
				t.Errorf("no line %q with the field %q", message, key)
			}
		}
	}
}

var (
	logCall    = regexp.MustCompile(`[lL]og\.(?:Debugf?|Info|Warn|Error|Check|Log)\((?:[\w.]+, )?"([^"]+)"`)
	errtypeNew = regexp.MustCompile(`\b(Err\w+)\s+= errtype\.New(?:Of)?\((?:\w+, )?"[^"]*", "(\w+)"\)`)
)

// source returns the Go files of a directory, or of several by a pattern, as one, without tests.
func source(t testing.TB, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var all strings.Builder
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		if !strings.HasSuffix(file, "_test.go") {
			all.Write(text)
		}
	}
	return all.String()
}

func TestTheDocumentationNamesEveryLogMessage(t *testing.T) {
	t.Parallel()
	found := make(map[string]bool)
	for _, match := range logCall.FindAllStringSubmatch(source(t, ".")+source(t, "internal/*")+source(t, "../internal/usercall"), -1) {
		message := match[1]
		if strings.HasPrefix(message, "wire client: ") {
			message = "wire client: …"
		}
		found[message] = true
	}
	doctable.MustBeSame(t, "log message", doctable.ByCode(t, observability, "Client", "message"), found)
}

func TestTheDocumentationNamesEveryTypeOfError(t *testing.T) {
	t.Parallel()
	found := map[string]string{ // those that are no sentinels of the module
		"canceled": "context.Canceled", "deadline_exceeded": "context.DeadlineExceeded",
		"panic": "*listeners.PanicError", "connection_refused": "syscall.ECONNREFUSED", "_OTHER": "",
	}
	for _, pkg := range []struct{ dir, prefix string }{{".", ""}, {"internal/zkerr", ""}, {"../retry", "retry."}} {
		for _, match := range errtypeNew.FindAllStringSubmatch(source(t, pkg.dir), -1) {
			if other, ok := found[match[2]]; ok {
				t.Errorf("%s and %s have the same type", match[1], other)
			}
			found[match[2]] = pkg.prefix + match[1]
		}
	}
	exported := source(t, ".")
	for kind, name := range found { // those without a name in the API are known by their code
		if strings.HasPrefix(name, "Err") && !strings.Contains(exported, "= zkerr."+name+"\n") {
			found[kind] = ""
		}
	}
	for code := int32(-1); code > -200; code-- {
		kind := zktel.ErrorType(framework.ServerError(code))
		if name, ok := found[kind]; ok && name == "" && kind != "server_error" {
			found[kind] = strconv.Itoa(int(code))
		}
	}
	rows := doctable.ByCode(t, observability, "Client", "error.type")
	doctable.MustBeSame(t, "type of error", rows, found)
	for kind, name := range found {
		if got := strings.Join(doctable.Code(rows[kind]["error"]), " "); got != name {
			t.Errorf("the type %s is documented for %q, and is of %q", kind, got, name)
		}
	}
}

func TestTheConstantsAreDocumented(t *testing.T) {
	t.Parallel()
	constant := regexp.MustCompile(`\t(Attr|Metric)\w+ += "([^"]+)"`)
	tables := map[string]map[string]doctable.Row{"Attr": doctable.ByCode(t, observability, "Client", "span attribute"), "Metric": doctable.ByCode(t, observability, "Client", "metric")}
	onMetrics := make(map[string]bool)
	for _, row := range tables["Metric"] {
		for _, key := range doctable.Code(row["attributes"]) {
			onMetrics[key] = true
		}
	}
	text := must.Get(os.ReadFile("zktel/names.go"))(t)
	all := constant.FindAllStringSubmatch(string(text), -1)
	for _, match := range all {
		_, ok := tables[match[1]][match[2]]
		if !ok && !onMetrics[match[2]] {
			t.Errorf("%s %s is not in %s", match[1], match[2], observability)
		}
	}
	if len(all) < 10 {
		t.Errorf("found %d constants", len(all))
	}
}
