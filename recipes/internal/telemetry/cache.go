package telemetry

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/version"
)

// cacheScopeName is the instrumentation scope of the caches' metrics.
const cacheScopeName = "github.com/docent-go/docent/recipes/cache"

// Names of metrics and attributes of caches. Paths are on none of them.
const (
	MetricCacheNodes  = "zookeeper.cache.nodes"
	metricCacheEvents = "zookeeper.cache.events"
	metricCacheResync = "zookeeper.cache.resync.duration"
	metricCacheStale  = "zookeeper.cache.stale"
	attrCacheName     = "zookeeper.cache.name"
	attrCacheEvent    = "zookeeper.cache.event"
)

// A Cache reports what happens to one cache. It is immutable.
type Cache struct {
	nodes   metric.Int64UpDownCounter
	events  metric.Int64Counter
	resyncs metric.Float64Histogram
	stale   metric.Int64UpDownCounter
	base    metric.MeasurementOption
	kinds   []metric.MeasurementOption // by the kinds of events
}

// OfCache returns the telemetry of a cache, whose events have the kinds. An instrument that the
// provider refuses is replaced by one that does nothing, and the application's error handler is
// notified.
func OfCache(c *framework.Client, name string, kinds []string) *Cache {
	meter := c.MeterProvider().Meter(cacheScopeName, metric.WithInstrumentationVersion(version.Module()))
	t := new(Cache)
	var errs [4]error
	t.nodes, errs[0] = meter.Int64UpDownCounter(MetricCacheNodes, metric.WithUnit("{znode}"),
		metric.WithDescription("Znodes that caches have."))
	t.events, errs[1] = meter.Int64Counter(metricCacheEvents, metric.WithUnit("{event}"),
		metric.WithDescription("Events of caches."))
	t.resyncs, errs[2] = meter.Float64Histogram(metricCacheResync, metric.WithUnit("s"),
		metric.WithDescription("Time it took to fill a cache, also again after an outage."),
		metric.WithExplicitBucketBoundaries(.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300))
	t.stale, errs[3] = meter.Int64UpDownCounter(metricCacheStale, metric.WithUnit("{cache}"),
		metric.WithDescription("Caches that may be behind."))
	for _, err := range errs {
		if err != nil {
			otel.Handle(err)
		}
	}
	var base []attribute.KeyValue
	if name != "" {
		base = append(base, attribute.String(attrCacheName, name))
	}
	t.base = metric.WithAttributeSet(attribute.NewSet(base...))
	for _, kind := range kinds {
		set := attribute.NewSet(append(slices.Clip(base), attribute.String(attrCacheEvent, kind))...)
		t.kinds = append(t.kinds, metric.WithAttributeSet(set))
	}
	return t
}

// Opened counts a cache that is not ready.
func (t *Cache) Opened(ctx context.Context) { t.stale.Add(ctx, 1, t.base) }

// Closed takes back what a cache has counted for.
func (t *Cache) Closed(ctx context.Context, nodes int, stale bool) {
	t.nodes.Add(ctx, -int64(nodes), t.base)
	if stale {
		t.stale.Add(ctx, -1, t.base)
	}
}

// Became counts an event of the kind, by which the cache is stale from now on, or is not any more.
func (t *Cache) Became(ctx context.Context, kind int, stale bool) {
	change := int64(-1)
	if stale {
		change = 1
	}
	t.stale.Add(ctx, change, t.base)
	t.events.Add(ctx, 1, t.kinds[kind])
}

// Filled records how long a fill took.
func (t *Cache) Filled(ctx context.Context, took time.Duration) {
	t.resyncs.Record(ctx, took.Seconds(), t.base)
}

// Changed counts events by their kinds, which led to so many more znodes.
func (t *Cache) Changed(ctx context.Context, counts []int64, more int) {
	for kind, n := range counts {
		if n > 0 {
			t.events.Add(ctx, n, t.kinds[kind])
		}
	}
	if more != 0 {
		t.nodes.Add(ctx, int64(more), t.base)
	}
}
