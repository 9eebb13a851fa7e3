package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/docent-go/docent/framework"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/version"
	"github.com/docent-go/docent/listeners"
	"github.com/docent-go/docent/recipes/locktel"
)

// A Node reports what happens to one kept znode. It is immutable.
type Node struct {
	standing  metric.Int64UpDownCounter
	creations metric.Int64Counter
	labels    metric.MeasurementOption
	log       *zap.Logger
}

// OfNode returns the telemetry of a znode that is kept, at a path of the ensemble.
func OfNode(c *framework.Client, name, path string) Node {
	meter := c.MeterProvider().Meter(locktel.NodeScopeName,
		metric.WithInstrumentationVersion(version.Module()), metric.WithSchemaURL(semconv.SchemaURL))
	n := Node{
		labels: metric.WithAttributes(),
		log:    c.Logger().Named("node").With(zap.String(zktel.AttrNodePath, path)),
	}
	if name != "" {
		n.labels = metric.WithAttributes(attribute.String(locktel.AttrNodeName, name))
		n.log = n.log.With(zap.String(locktel.AttrNodeName, name))
	}
	var errs [2]error
	n.standing, errs[0] = meter.Int64UpDownCounter(locktel.MetricNodeStanding, metric.WithUnit("{node}"),
		metric.WithDescription("Kept znodes that exist."))
	n.creations, errs[1] = meter.Int64Counter(locktel.MetricNodeCreations, metric.WithUnit("{creation}"),
		metric.WithDescription("Creations of kept znodes."))
	for _, err := range errs {
		if err != nil {
			otel.Handle(err)
		}
	}
	return n
}

// Created counts a creation.
func (n Node) Created(ctx context.Context) { n.creations.Add(ctx, 1, n.labels) }

// Stands notes that the znode exists from now on, or does not.
func (n Node) Stands(exists bool) {
	change := int64(-1)
	if exists {
		change = 1
	}
	n.standing.Add(context.Background(), change, n.labels) //nolint:forbidigo // no call is behind it
}

// Changed logs what has become of the znode: as a warning if that does not pass by itself.
func (n Node) Changed(kind fmt.Stringer, err error, warn bool) {
	level := zapcore.DebugLevel
	if warn {
		level = zapcore.WarnLevel
	}
	if line := n.log.Check(level, "kept znode changed"); line != nil {
		line.Write(zap.Stringer("change", kind), zap.String(zktel.AttrErrorType, framework.ErrorType(err)), zap.Error(err))
	}
}

// Panicked logs that a function of the user's panicked.
func (n Node) Panicked(p *listeners.PanicError) {
	n.log.Error("a function of OnChange panicked", zap.Error(p), zap.ByteString("stack", p.Stack))
}
