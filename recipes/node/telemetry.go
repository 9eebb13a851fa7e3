package node

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/instrument"
	"github.com/docent-go/docent/internal/version"
	"github.com/docent-go/docent/listeners"
	"github.com/docent-go/docent/recipes/locktel"
)

// instruments report what happens to one kept znode. They are immutable.
type instruments struct {
	count     metric.Int64UpDownCounter
	creations metric.Int64Counter
	labels    metric.MeasurementOption
	log       *zap.Logger
}

// newInstruments returns the telemetry of a znode that is kept, at a path of the ensemble.
func newInstruments(c *framework.Client, name, path string) instruments {
	meter := c.MeterProvider().Meter(locktel.NodeScopeName,
		metric.WithInstrumentationVersion(version.Module()), metric.WithSchemaURL(semconv.SchemaURL))
	n := instruments{
		labels: metric.WithAttributes(),
		log:    c.Logger().Named("node").With(zap.String(zktel.AttrNodePath, path)),
	}
	if name != "" {
		n.labels = metric.WithAttributes(attribute.String(locktel.AttrNodeName, name))
		n.log = n.log.With(zap.String(locktel.AttrNodeName, name))
	}
	n.count = instrument.Of(meter.Int64UpDownCounter(locktel.MetricNodeCount, metric.WithUnit("{node}"),
		metric.WithDescription("Kept znodes that exist.")))
	n.creations = instrument.Of(meter.Int64Counter(locktel.MetricNodeCreations, metric.WithUnit("{creation}"),
		metric.WithDescription("Creations of kept znodes.")))
	return n
}

// created counts a creation.
func (n instruments) created(ctx context.Context) { n.creations.Add(ctx, 1, n.labels) }

// exists records that the znode exists from now on, or does not.
func (n instruments) exists(now bool) {
	change := int64(-1)
	if now {
		change = 1
	}
	n.count.Add(context.Background(), change, n.labels) //nolint:forbidigo // no call is behind it
}

// changed logs what has become of the znode: as a warning if that does not pass by itself.
func (n instruments) changed(kind fmt.Stringer, err error, warn bool) {
	level := zapcore.DebugLevel
	if warn {
		level = zapcore.WarnLevel
	}
	if line := n.log.Check(level, "kept znode changed"); line != nil {
		line.Write(zap.Stringer("change", kind), zap.String(zktel.AttrErrorType, zktel.ErrorType(err)), zap.Error(err))
	}
}

// panicked logs that a function of the user's panicked.
func (n instruments) panicked(p *listeners.PanicError) {
	n.log.Error("a function of OnChange panicked", zap.Error(p), zap.ByteString("stack", p.Stack))
}
