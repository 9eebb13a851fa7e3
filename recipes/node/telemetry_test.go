package node_test

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/internal/must"
	"github.com/docent-go/docent/recipes"
	"github.com/docent-go/docent/recipes/internal/recipetest"
	"github.com/docent-go/docent/recipes/locktel"
	"github.com/docent-go/docent/testing/zkenv"
	"github.com/docent-go/docent/testing/zktest"
)

// sums returns the sums of the metrics of kept znodes, and fails the test if one has another
// attribute than the name.
func sums(t testing.TB, reader sdkmetric.Reader, name string) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	must.OK(t, reader.Collect(t.Context(), &all))
	found := make(map[string]int64)
	for _, scope := range all.ScopeMetrics {
		if scope.Scope.Name != locktel.NodeScopeName {
			continue
		}
		for _, m := range scope.Metrics {
			data, ok := m.Data.(metricdata.Sum[int64])
			if !ok || len(data.DataPoints) != 1 {
				t.Fatalf("%s: %+v, want a sum with one point", m.Name, m.Data)
			}
			want := attribute.NewSet(attribute.String(locktel.AttrNodeName, name))
			if got := data.DataPoints[0].Attributes; !got.Equals(&want) {
				t.Errorf("%s: attributes %v, want %v", m.Name, got, want)
			}
			found[m.Name] = data.DataPoints[0].Value
		}
	}
	return found
}

func TestTelemetryOfNodes(t *testing.T) {
	recipetest.InEachEnv(t, func(t *testing.T, env *zkenv.Env) {
		reader := sdkmetric.NewManualReader()
		core, logs := observer.New(zap.WarnLevel)
		c, other, path := env.Client(t,
			framework.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
			framework.WithLogger(zap.New(core))), env.Client(t), recipetest.Path(t)+"/n"
		check := func(what string, count, creations int64) {
			t.Helper()
			got := sums(t, reader, "registration")
			if got[locktel.MetricNodeCount] != count || got[locktel.MetricNodeCreations] != creations {
				t.Errorf("%s: %v, want %d that exist and %d creations", what, got, count, creations)
			}
		}
		n := kept(t, c, path, "alive", recipes.WithName("registration"))
		mustAwait(t, n)
		check("made", 1, 1)
		seen := follow(t, n)
		must.OK(t, other.Delete(t.Context(), path))
		seen.awaitKinds(t, "Made Away Made")
		check("made again", 1, 2)
		must.OK(t, n.Close(t.Context()))
		check("closed", 0, 2)
		must.Get(other.Create(t.Context(), path, []byte("theirs"), framework.Ephemeral(), framework.WithParents()))(t)
		logs.TakeAll()
		taken := kept(t, c, path, "alive", recipes.WithName("registration"))
		zktest.Eventually(t, recipetest.Generous, "a warning", func() bool { return logs.FilterMessage("kept znode changed").Len() > 0 })
		line := logs.FilterMessage("kept znode changed").All()[0].ContextMap()
		if line["change"] != "Taken" || line["error.type"] != "taken" || line["zookeeper.node.path"] != c.AbsolutePath(path) {
			t.Errorf("fields %v, want the change, the type of the error and the path", line)
		}
		must.OK(t, taken.Close(t.Context()))
	})
}
