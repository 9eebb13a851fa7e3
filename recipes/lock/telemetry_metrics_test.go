package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/lock"
	"github.com/docent-go/docent/recipes/locktel"
	"github.com/docent-go/docent/testing/zkenv"
)

// TestMetrics runs every event of all kinds of locks, and compares their metrics with the expected
// ones.
func TestMetrics(t *testing.T) {
	t.Parallel()
	for _, kind := range observedKinds() {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			zkenv.ForEach(t, func(t *testing.T, env *zkenv.Env) {
				a, b := serviceIn(t, env, "a"), serviceIn(t, env, "b")
				checkMetrics(t, "before anything", nil, measuredOf(t, a, kind.name))
				runAll(t, env, kind, a, b)
				checkMetrics(t, "after all", wantMetrics(kind), measuredOf(t, a, kind.name))
			}, zkenv.Only("in virtual time every run takes the same time", zkenv.Embedded))
		})
	}
}

// long is how long locks are held and waited for: in the middle of a bucket.
const long = 2 * time.Second

// runAll acquires a's lock in all ways: at once, after a wait, not in time, not by a try,
// and by re-entry. Then it loses the lock.
func runAll(t *testing.T, env *zkenv.Env, k observedKind, a, b *service) {
	t.Helper()
	l, blocker := k.newLocker(t, a.client, recipes.WithName("orders")), k.block(t, b.client)
	lease := mustLock(t, l)
	if k.reentrant {
		mustRelease(t, mustLock(t, l))
	}
	<-time.After(long)
	mustRelease(t, lease)

	theirs := mustLock(t, blocker)
	env.Quiesce() // a semaphore mutex leaves its queue after the grant
	if _, err := l.TryLock(t.Context()); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("try: %v, want ErrHeld", err)
	}
	hurried, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	if _, err := l.Lock(hurried); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("lock: %v, want DeadlineExceeded", err)
	}
	waiting := lockLater(t.Context(), l)
	<-time.After(long)
	if k.name != "multi" {
		checkMetrics(t, "while it waits", wantCount(k, 0, 1), counts(measuredOf(t, a, k.name)))
	}
	mustRelease(t, theirs)
	got := must.Receive(t, waiting, "the lock")
	if got.err != nil {
		t.Fatal(got.err)
	}
	if k.name != "multi" {
		checkMetrics(t, "while it holds", wantCount(k, 1, 0), counts(measuredOf(t, a, k.name)))
		checkMetrics(t, "before a loss", []metricdata.Metrics{wantLosses(k, 0)}, losses(measuredOf(t, a, k.name)))
	}
	<-time.After(long)
	must.OK(t, b.client.Delete(t.Context(), firstOf(got.lease).Node()))
	must.Receive(t, got.lease.Lost(), "the loss")
	env.Quiesce()
}

// wantLosses returns the counter of losses after some deletions of the holder's znode. Every reason is
// counted from 0 on.
func wantLosses(k observedKind, deleted int64) metricdata.Metrics {
	var points []metricdata.DataPoint[int64]
	for _, reason := range []string{
		"client_closed", "lease_deadline", "node_deleted", "other", "session_expired", "session_replaced", "suspended",
	} {
		p := metricdata.DataPoint[int64]{Attributes: attrsOf(k, attribute.String(locktel.AttrLossReason, reason))}
		if reason == "node_deleted" {
			p.Value = deleted
		}
		points = append(points, p)
	}
	return metricdata.Metrics{
		Name: locktel.MetricLosses, Unit: "{loss}", Description: "Lost locks.",
		Data: metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true, DataPoints: points},
	}
}

// wantMetrics returns the metrics of a after runAll. Those of a Multi are
// also its members', and only they are counted.
func wantMetrics(k observedKind) []metricdata.Metrics {
	bounds := []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
	acquires := metricdata.Metrics{
		Name: locktel.MetricAcquireDuration, Unit: "s", Description: "Duration of acquires, also failed ones.",
		Data: metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality, DataPoints: []metricdata.HistogramDataPoint[float64]{
			point(bounds, 0, attrsOf(k, attribute.String(locktel.AttrOutcome, "acquired"), attribute.Bool(locktel.AttrContended, false))),
			point(bounds, long, attrsOf(k, attribute.String(locktel.AttrOutcome, "acquired"), attribute.Bool(locktel.AttrContended, true))),
			point(bounds, 0, attrsOf(k, attribute.String(locktel.AttrOutcome, "held"), attribute.Bool(locktel.AttrContended, true))),
			point(bounds, long, attrsOf(k, attribute.String(locktel.AttrOutcome, "timeout"), attribute.Bool(locktel.AttrContended, true),
				attribute.String("error.type", "deadline_exceeded"))),
		}},
	}
	bounds = append(bounds, 1800, 3600)
	holds := metricdata.Metrics{
		Name: locktel.MetricHoldDuration, Unit: "s", Description: "Duration of holds.",
		Data: metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality, DataPoints: []metricdata.HistogramDataPoint[float64]{
			point(bounds, long, attrsOf(k)),
			point(bounds, long, attrsOf(k, attribute.String("error.type", "lock_lost"))),
		}},
	}
	if k.name == "multi" {
		return []metricdata.Metrics{acquires, holds}
	}
	return append([]metricdata.Metrics{acquires}, append(wantCount(k, 0, 0), holds, wantLosses(k, 1))...)
}

func wantCount(k observedKind, held, waiting int64) []metricdata.Metrics {
	return []metricdata.Metrics{{
		Name: locktel.MetricCount, Unit: "{lock}", Description: "Locks that this process holds or waits for.",
		Data: metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, DataPoints: []metricdata.DataPoint[int64]{
			{Value: held, Attributes: attrsOf(k, attribute.String(locktel.AttrState, "held"))},
			{Value: waiting, Attributes: attrsOf(k, attribute.String(locktel.AttrState, "waiting"))},
		}},
	}}
}

// attrsOf returns the attributes of a measurement: a Multi has no name of its own.
func attrsOf(k observedKind, more ...attribute.KeyValue) attribute.Set {
	more = append(more, attribute.String(locktel.AttrType, k.name))
	if k.name != "multi" {
		more = append(more, attribute.String(locktel.AttrName, "orders"))
	}
	return attribute.NewSet(more...)
}

// point returns a point with one value, in the bucket of value.
func point(bounds []float64, value time.Duration, attrs attribute.Set) metricdata.HistogramDataPoint[float64] {
	buckets := make([]uint64, len(bounds)+1)
	i := 0
	for i < len(bounds) && value.Seconds() > bounds[i] {
		i++
	}
	buckets[i] = 1
	return metricdata.HistogramDataPoint[float64]{Count: 1, Bounds: bounds, BucketCounts: buckets, Attributes: attrs}
}

// measuredOf returns the metrics of the locks of one type, without the values
// within a bucket: the unfair mutex's pauses are random.
func measuredOf(t testing.TB, s *service, typ string) []metricdata.Metrics {
	t.Helper()
	ofType := func(attrs attribute.Set) bool {
		value, _ := attrs.Value(locktel.AttrType)
		return value.AsString() == typ
	}
	var found []metricdata.Metrics
	for _, m := range s.measured(t).Metrics {
		empty := false
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			var points []metricdata.HistogramDataPoint[float64]
			for _, p := range data.DataPoints {
				if ofType(p.Attributes) {
					p.Sum, p.Min, p.Max = 0, metricdata.Extrema[float64]{}, metricdata.Extrema[float64]{}
					points = append(points, p)
				}
			}
			data.DataPoints, empty = points, len(points) == 0
			m.Data = data
		case metricdata.Sum[int64]:
			var points []metricdata.DataPoint[int64]
			for _, p := range data.DataPoints {
				if ofType(p.Attributes) {
					points = append(points, p)
				}
			}
			data.DataPoints, empty = points, len(points) == 0
			m.Data = data
		}
		if !empty {
			found = append(found, m)
		}
	}
	return found
}

// counts returns those that say how many hold a lock, and how many wait for it.
func counts(metrics []metricdata.Metrics) []metricdata.Metrics {
	return metricsNamed(metrics, locktel.MetricCount)
}

func losses(metrics []metricdata.Metrics) []metricdata.Metrics {
	return metricsNamed(metrics, locktel.MetricLosses)
}

func metricsNamed(metrics []metricdata.Metrics, name string) []metricdata.Metrics {
	var found []metricdata.Metrics
	for _, m := range metrics {
		if m.Name == name {
			found = append(found, m)
		}
	}
	return found
}

func checkMetrics(t testing.TB, when string, want, got []metricdata.Metrics) {
	t.Helper()
	if !metricdatatest.AssertEqual(t, metricdata.ScopeMetrics{Metrics: want}, metricdata.ScopeMetrics{Metrics: got},
		metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars()) {
		t.Errorf("%s", when)
	}
}
