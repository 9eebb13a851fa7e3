package framework_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/testing/fault"
	"github.com/docent-go/docent/testing/zkenv"
)

// wantMetric fails the test unless the metric is as wanted, times and exemplars aside.
func wantMetric(t testing.TB, all map[string]metricdata.Metrics, want metricdata.Metrics) {
	t.Helper()
	got := all[want.Name]
	if got.Description == "" {
		t.Errorf("%s is missing or has no description", want.Name)
	}
	got.Description = ""
	metricdatatest.AssertEqual(t, want, got, metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
}

// sum returns a sum whose points tell each value of the key apart.
func sum(name, unit, key string, monotonic bool, values map[string]int64) metricdata.Metrics {
	data := metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: monotonic}
	for value, n := range values {
		point := metricdata.DataPoint[int64]{Value: n}
		if key != "" {
			point.Attributes = attribute.NewSet(attribute.String(key, value))
		}
		data.DataPoints = append(data.DataPoints, point)
	}
	return metricdata.Metrics{Name: name, Unit: unit, Data: data}
}

// durations returns a point of the operations' durations: n that took d each.
func durations(n uint64, d time.Duration, attributes ...attribute.KeyValue) metricdata.HistogramDataPoint[float64] {
	bounds := []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}
	counts := make([]uint64, len(bounds)+1)
	i := 0
	for i < len(bounds) && d.Seconds() > bounds[i] {
		i++
	}
	counts[i] = n
	return metricdata.HistogramDataPoint[float64]{
		Attributes: attribute.NewSet(append(attributes, attribute.String(zktel.AttrDBSystem, "zookeeper"))...),
		Count:      n, Bounds: bounds, BucketCounts: counts, Sum: float64(n) * d.Seconds(),
		Min: metricdata.NewExtrema(d.Seconds()), Max: metricdata.NewExtrema(d.Seconds()),
	}
}

func TestDurationsAreMeasuredByOperationAndOutcome(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, w *zkenv.Env) {
		ms, way := newMeters(), w.Route(t)
		mustCreate(t, w.Client(t), "/app", "")
		c := way.Client(t, framework.WithMeterProvider(ms.provider), framework.WithNamespace("app"))
		host, _, _ := net.SplitHostPort(c.Servers()[0])
		for range 2 {
			must.OK(t, c.Sync(t.Context(), "/"))
		}
		_, _, err := c.Get(t.Context(), "/none")
		wantErr(t, "get", err, framework.ErrNoNode)
		way.Rules().Add(fault.Rule{Op: fault.Sync, Action: fault.DelayRequest, Delay: 3 * time.Second})
		must.OK(t, c.Sync(t.Context(), "/"))

		operation := func(name string, more ...attribute.KeyValue) []attribute.KeyValue {
			return append(more, attribute.String(zktel.AttrDBOperation, name),
				attribute.String(zktel.AttrDBNamespace, "/app"), attribute.String(zktel.AttrServerAddress, host))
		}
		syncs := durations(2, zkenv.Latency, operation("sync")...)
		slow := (3*time.Second + zkenv.Latency).Seconds()
		syncs.Count++
		syncs.Sum += slow
		syncs.Max = metricdata.NewExtrema(slow)
		syncs.BucketCounts[7]++ // up to 5 s
		wantMetric(t, ms.collect(t), metricdata.Metrics{
			Name: zktel.MetricOperationDuration, Unit: "s",
			Data: metricdata.Histogram[float64]{
				Temporality: metricdata.CumulativeTemporality,
				DataPoints: []metricdata.HistogramDataPoint[float64]{syncs, durations(1, zkenv.Latency, operation("getData",
					attribute.String(zktel.AttrErrorType, "no_node"), attribute.String(zktel.AttrDBStatusCode, "-101"))...)},
			},
		})
	})
}

func TestRetriesAreCountedByOperationAndReason(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, w *zkenv.Env) {
		ms, way := newMeters(), w.Route(t)
		c := way.Client(t, framework.WithMeterProvider(ms.provider))
		way.Rules().Add(fault.Rule{Op: fault.GetData, Action: fault.CutBefore, Times: 2})
		must.Get2(c.Get(t.Context(), "/"))(t)
		point := metricdata.DataPoint[int64]{Value: 2, Attributes: attribute.NewSet(
			attribute.String(zktel.AttrDBSystem, "zookeeper"), attribute.String(zktel.AttrDBOperation, "getData"),
			attribute.String(zktel.AttrErrorType, "connection_loss"))}
		wantMetric(t, ms.collect(t), metricdata.Metrics{
			Name: zktel.MetricRetries, Unit: "{retry}",
			Data: metricdata.Sum[int64]{Temporality: metricdata.CumulativeTemporality, IsMonotonic: true, DataPoints: []metricdata.DataPoint[int64]{point}},
		})
	})
}

// states returns the metric for so many clients in the states.
func states(counts map[string]int64) metricdata.Metrics {
	all := map[string]int64{"connecting": 0, "connected": 0, "suspended": 0, "lost": 0, "closed": 0, "auth_failed": 0, "read_only": 0}
	maps.Copy(all, counts)
	return sum(zktel.MetricConnectionState, "{client}", zktel.AttrConnectionState, false, all)
}

func TestStatesAndTransitionsOfAllClientsAreCounted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, w *zkenv.Env) {
		ms, way := newMeters(), w.Route(t)
		provider := framework.WithMeterProvider(ms.provider)
		var tr trail
		first, second := w.Client(t, provider), way.Client(t, provider, framework.WithStateListener(tr.add))
		transitions, ends := make(map[string]int64), map[string]int64{"session_deadline": 0, "session_expired": 0, "session_replaced": 0}
		for _, s := range []string{"connecting", "suspended", "lost", "auth_failed", "read_only", "closed"} {
			transitions[s] = 0
		}
		all := ms.collect(t)
		wantMetric(t, all, states(map[string]int64{"connected": 2}))
		wantMetric(t, all, sum(zktel.MetricSessionExpirations, "{session}", zktel.AttrErrorType, true, ends))

		way.Expire(t)
		tr.await(t, framework.Connecting, framework.Connected, framework.Suspended, framework.Lost, framework.Connected)
		w.Quiesce() // the listeners are told first
		transitions["connected"], transitions["suspended"], transitions["lost"], ends["session_expired"] = 3, 1, 1, 1
		all = ms.collect(t)
		wantMetric(t, all, states(map[string]int64{"connected": 2}))
		wantMetric(t, all, sum(zktel.MetricTransitions, "{transition}", zktel.AttrConnectionState, true, transitions))
		wantMetric(t, all, sum(zktel.MetricSessionExpirations, "{session}", zktel.AttrErrorType, true, ends))

		must.OK(t, errors.Join(first.Close(), second.Close()))
		all = ms.collect(t)
		if _, ok := all[zktel.MetricConnectionState]; ok {
			t.Error("closed clients go on to report a state")
		}
		transitions["closed"] = 2
		wantMetric(t, all, sum(zktel.MetricTransitions, "{transition}", zktel.AttrConnectionState, true, transitions))
	})
}

func TestWatchesAndPendingDeletionsAreCounted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, w *zkenv.Env) {
		ms, way := newMeters(), w.Route(t)
		c := way.Client(t, framework.WithMeterProvider(ms.provider))
		want := func(watches, deletes int64) {
			t.Helper()
			all := ms.collect(t)
			wantMetric(t, all, sum(zktel.MetricWatchCount, "{watch}", "", false, map[string]int64{"": watches}))
			wantMetric(t, all, sum(zktel.MetricBackgroundDeletes, "{node}", "", false, map[string]int64{"": deletes}))
		}
		for _, path := range []string{"/a", "/b"} {
			mustCreate(t, c, path, "")
			mustWatch(t, c, path, framework.WatchData)
			mustWatch(t, c, path, framework.WatchData) // shares the server's watch
		}
		want(2, 0)
		held := way.Rules().Add(fault.Rule{Op: fault.Delete, Action: fault.HoldRequest})
		c.Discard("/a")
		c.Discard("/b")
		await(t, held.Hit(), "the first deletion")
		want(2, 2)
		held.Release()
		w.Quiesce()
		want(0, 0)
	})
}

// A broken meter refuses every instrument.
type broken struct{ noop.MeterProvider }

func (broken) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{} }

type brokenMeter struct{ noop.Meter }

var errBroken = errors.New("no instrument")

func (brokenMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return noop.Float64Histogram{}, errBroken
}

func (brokenMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	return nil, errBroken
}

// Not parallel: OpenTelemetry has one error handler.
func TestInstrument_that_fails_is_reported(t *testing.T) {
	var reported []error
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { reported = append(reported, err) }))
	defer otel.SetErrorHandler(before)
	c := newClient(t, "127.0.0.1:1", framework.WithMeterProvider(broken{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, "sync", c.Sync(ctx, "/"), context.Canceled)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if len(reported) != 2 || !errors.Is(errors.Join(reported...), errBroken) {
		t.Errorf("reported %v, want the two that were refused", reported)
	}
}
