package cache

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/instrument"
	"github.com/docent-go/docent/internal/version"
)

// scopeName is the instrumentation scope of the caches' metrics.
const scopeName = "github.com/docent-go/docent/recipes/cache"

// Names of metrics and attributes of caches. Paths are on none of them.
const (
	metricNodes  = "zookeeper.cache.nodes"
	metricEvents = "zookeeper.cache.events"
	metricResync = "zookeeper.cache.resync.duration"
	metricStale  = "zookeeper.cache.stale"
	attrName     = "zookeeper.cache.name"
	attrEvent    = "zookeeper.cache.event"
)

// instruments report what happens to one cache. They are immutable.
type instruments struct {
	nodes   metric.Int64UpDownCounter
	events  metric.Int64Counter
	resyncs metric.Float64Histogram
	stale   metric.Int64UpDownCounter
	base    metric.MeasurementOption
	kinds   []metric.MeasurementOption // by the kinds of events
}

// newInstruments returns the telemetry of a cache. An instrument that the provider refuses is replaced by one
// that does nothing, and the application's error handler is notified.
func newInstruments(c *framework.Client, name string) *instruments {
	meter := c.MeterProvider().Meter(scopeName, metric.WithInstrumentationVersion(version.Module()))
	t := new(instruments)
	t.nodes = instrument.Of(meter.Int64UpDownCounter(metricNodes, metric.WithUnit("{znode}"),
		metric.WithDescription("Znodes that caches have.")))
	t.events = instrument.Of(meter.Int64Counter(metricEvents, metric.WithUnit("{event}"),
		metric.WithDescription("Events of caches.")))
	t.resyncs = instrument.Of(meter.Float64Histogram(metricResync, metric.WithUnit("s"),
		metric.WithDescription("Time it took to fill a cache, also again after an outage."),
		metric.WithExplicitBucketBoundaries(.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300)))
	t.stale = instrument.Of(meter.Int64UpDownCounter(metricStale, metric.WithUnit("{cache}"),
		metric.WithDescription("Caches that may be behind.")))
	var base []attribute.KeyValue
	if name != "" {
		base = append(base, attribute.String(attrName, name))
	}
	t.base = metric.WithAttributeSet(attribute.NewSet(base...))
	for _, kind := range kindNames() {
		set := attribute.NewSet(append(slices.Clip(base), attribute.String(attrEvent, kind))...)
		t.kinds = append(t.kinds, metric.WithAttributeSet(set))
	}
	return t
}

// opened counts a cache that is not ready.
func (t *instruments) opened(ctx context.Context) { t.stale.Add(ctx, 1, t.base) }

// closed takes back what a cache has counted for.
func (t *instruments) closed(ctx context.Context, nodes int, stale bool) {
	t.nodes.Add(ctx, -int64(nodes), t.base)
	if stale {
		t.stale.Add(ctx, -1, t.base)
	}
}

// became counts an event of the kind, by which the cache is stale from now on, or is not any more.
func (t *instruments) became(ctx context.Context, kind int, stale bool) {
	change := int64(-1)
	if stale {
		change = 1
	}
	t.stale.Add(ctx, change, t.base)
	t.events.Add(ctx, 1, t.kinds[kind])
}

// filled records how long a fill took.
func (t *instruments) filled(ctx context.Context, took time.Duration) {
	t.resyncs.Record(ctx, took.Seconds(), t.base)
}

// changed counts events by their kinds, which led to so many more znodes.
func (t *instruments) changed(ctx context.Context, events []Event, more int) {
	var counts [Stale + 1]int64
	for _, e := range events {
		counts[e.Kind]++
	}
	for kind, n := range counts {
		if n > 0 {
			t.events.Add(ctx, n, t.kinds[kind])
		}
	}
	if more != 0 {
		t.nodes.Add(ctx, int64(more), t.base)
	}
}
