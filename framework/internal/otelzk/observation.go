// Package otelzk makes the client's spans and keeps its metrics. It knows only the names of
// operations, states and sessions.
package otelzk

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/docent-go/docent/framework/internal/zkerr"
	"github.com/docent-go/docent/framework/zktel"
	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/errtype"
	"github.com/docent-go/docent/internal/proto"
	"github.com/docent-go/docent/internal/slogcore"
	"github.com/docent-go/docent/retry"
)

// An Operation is an operation that is observed.
type Operation struct {
	Name  string // as in errors: "get"
	Path  string // as the ensemble knows it, "" if there is none
	Batch int    // operations of a transaction
}

// A Session is the session that an operation uses.
type Session interface {
	ID() int64
	ServerAddr() string // of its latest connection, as "host:port"
}

// An Observation is one operation for its span, its metrics and the log: from the call to its end,
// with all attempts. It belongs to the goroutine of the operation.
type Observation struct {
	Session Session // of the latest attempt, nil if there was none

	telemetry *Telemetry
	op        Operation
	began     time.Time
	span      trace.Span      // nil if it has none
	ctx       context.Context // of the operation, with the span, for its log lines
	retries   int
}

// Observe begins an observation. If neither spans nor metrics nor logs need it, Observe returns nil
// and allocates nothing.
func (t *Telemetry) Observe(ctx context.Context, op Operation) *Observation {
	spans := trace.SpanContextFromContext(ctx).IsSampled() // operations begin no traces
	if !spans && !t.duration.Enabled(ctx) && !t.retries.Enabled(ctx) && !t.log.Core().Enabled(zap.DebugLevel) {
		return nil
	}
	o := &Observation{telemetry: t, op: op, ctx: ctx, began: time.Now()}
	if spans {
		o.ctx, o.span = t.tracer.Start(ctx, t.spanName(op),
			trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(t.spanAttributes(op)...))
	}
	return o
}

// Context returns the operation's context, with its span.
func (o *Observation) Context() context.Context { return o.ctx }

func (t *Telemetry) spanName(op Operation) string {
	if t.namespace == "" {
		return operationName(op.Name)
	}
	return operationName(op.Name) + " " + t.namespace
}

func (t *Telemetry) spanAttributes(op Operation) []attribute.KeyValue {
	attributes := t.operationAttributes(op.Name)
	if op.Path != "" {
		attributes = append(attributes, attribute.String(zktel.AttrNodePath, op.Path))
	}
	if op.Batch > 1 {
		attributes = append(attributes, attribute.Int(zktel.AttrDBBatchSize, op.Batch))
	}
	return attributes
}

func (t *Telemetry) operationAttributes(op string) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		attribute.String(zktel.AttrDBSystem, dbSystem),
		attribute.String(zktel.AttrDBOperation, operationName(op)),
	}
	if t.namespace != "" {
		attributes = append(attributes, attribute.String(zktel.AttrDBNamespace, t.namespace))
	}
	return attributes
}

// Retrying records that an attempt failed and that another will follow.
func (o *Observation) Retrying(f retry.Failure) {
	o.retries++
	kind := errtype.Of(f.Err)
	if counter := o.telemetry.retries; counter.Enabled(o.ctx) {
		counter.Add(o.ctx, 1, metric.WithAttributes(append(o.telemetry.operationAttributes(o.op.Name),
			attribute.String(zktel.AttrErrorType, kind))...))
	}
	if entry := o.telemetry.log.Check(zap.DebugLevel, "attempt failed, there will be another"); entry != nil {
		entry.Write(zap.String(zktel.AttrDBOperation, operationName(o.op.Name)), zap.String(zktel.AttrNodePath, o.op.Path),
			zap.Int(zktel.AttrRetries, o.retries), zap.Duration("wait", f.Wait),
			zap.String(zktel.AttrErrorType, kind), zap.Error(f.Err), slogcore.Context(o.ctx))
	}
}

// End ends the observation of an operation that ended with err. failed says whether err is a
// failure for the caller.
func (o *Observation) End(err error, failed bool) {
	m := measurement{op: o.op.Name}
	if failed {
		m.errorType = errtype.Of(err)
	}
	m.code = zkerr.StatusCode(err)
	m.host, m.port = o.server()
	if duration := o.telemetry.duration; duration.Enabled(o.ctx) {
		duration.Record(o.ctx, time.Since(o.began).Seconds(), o.telemetry.recordOptions(m)...)
	}
	if o.span == nil {
		return
	}
	if o.span.IsRecording() {
		o.finishSpan(m, err)
	}
	o.span.End()
}

func (o *Observation) finishSpan(m measurement, err error) {
	attributes := m.outcome()
	if port, err := strconv.Atoi(m.port); err == nil && port != proto.DefaultPort {
		attributes = append(attributes, attribute.Int(zktel.AttrServerPort, port))
	}
	if o.Session != nil {
		attributes = append(attributes, attribute.String(zktel.AttrSessionID, SessionKey(o.Session.ID())))
	}
	if o.retries > 0 {
		attributes = append(attributes, attribute.Int(zktel.AttrRetries, o.retries))
	}
	o.span.SetAttributes(attributes...)
	if m.errorType != "" {
		o.span.SetStatus(codes.Error, cause.Join(o.ctx, err).Error())
	}
}

// server returns the server of the latest attempt.
func (o *Observation) server() (host, port string) {
	if o.Session == nil {
		return "", ""
	}
	host, port, err := net.SplitHostPort(o.Session.ServerAddr())
	if err != nil {
		return "", ""
	}
	return host, port
}

// A measurement has the attributes of a measured duration of an operation.
type measurement struct{ op, errorType, code, host, port string }

// outcome returns the attributes that are known when an operation has ended. The span and the
// metrics both have them.
func (m measurement) outcome() []attribute.KeyValue {
	var attributes []attribute.KeyValue
	for _, a := range []struct{ key, value string }{
		{zktel.AttrServerAddress, m.host}, {zktel.AttrErrorType, m.errorType}, {zktel.AttrDBStatusCode, m.code},
	} {
		if a.value != "" {
			attributes = append(attributes, attribute.String(a.key, a.value))
		}
	}
	return attributes
}

// recordOptions returns m's attributes as they are recorded.
func (t *Telemetry) recordOptions(m measurement) []metric.RecordOption {
	m.port = "" // not on metrics
	if known, ok := t.measurements.Load(m); ok {
		return known.([]metric.RecordOption)
	}
	set := attribute.NewSet(append(t.operationAttributes(m.op), m.outcome()...)...)
	known, _ := t.measurements.LoadOrStore(m, []metric.RecordOption{metric.WithAttributeSet(set)})
	return known.([]metric.RecordOption)
}

// operationName returns ZooKeeper's name for an operation. A watch has no such name: in the
// protocol it is a flag of a read.
func operationName(op string) string {
	switch op {
	case "get", "config":
		return "getData"
	case "children":
		return "getChildren"
	case "set":
		return "setData"
	case "get ACL of":
		return "getACL"
	case "set ACL of":
		return "setACL"
	case "ephemerals":
		return "getEphemerals"
	case "txn", "create all":
		return "multi"
	}
	return op
}

// SessionKey returns a session's id as attributes show it.
func SessionKey(id int64) string { return fmt.Sprintf("%#x", id) }
