package framework

import (
	"context"
	"net"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/docent-go/docent/internal/cause"
	"github.com/docent-go/docent/internal/zapctx"
	"github.com/docent-go/docent/retry"
)

// An observation is one operation as its span, its metrics and the log tell of
// it: from the call to its end, all attempts included. It belongs to the
// goroutine of the operation.
type observation struct {
	core    *core
	rq      request
	began   time.Time
	span    trace.Span      // nil if it has none
	ctx     context.Context // of the operation, with the span, for what it logs
	session *session        // of the latest attempt, nil if there was none
	retries int
}

// observe begins an observation. It returns nil where nobody would hear of it,
// and has allocated nothing then.
func (c *core) observe(ctx context.Context, rq *request) *observation {
	t := c.telemetry
	spans := t.spans.wants(ctx)
	if !spans && !t.duration.Enabled(ctx) && !t.retries.Enabled(ctx) && !c.log.Core().Enabled(zap.DebugLevel) {
		return nil
	}
	o := &observation{core: c, rq: *rq, ctx: ctx, began: time.Now()}
	if spans {
		o.ctx, o.span = t.tracer.Start(ctx, t.spanName(rq),
			trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(t.spanAttributes(rq)...))
	}
	return o
}

func (t *telemetry) spanName(rq *request) string {
	if t.namespace == "" {
		return operationName(rq.op)
	}
	return operationName(rq.op) + " " + t.namespace
}

func (t *telemetry) spanAttributes(rq *request) []attribute.KeyValue {
	attributes := t.operationAttributes(rq.op)
	if rq.path != "" {
		attributes = append(attributes, attribute.String(AttrNodePath, rq.path))
	}
	if rq.batch > 1 {
		attributes = append(attributes, attribute.Int(AttrDBBatchSize, rq.batch))
	}
	return attributes
}

func (t *telemetry) operationAttributes(op string) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		attribute.String(AttrDBSystem, dbSystem),
		attribute.String(AttrDBOperation, operationName(op)),
	}
	if t.namespace != "" {
		attributes = append(attributes, attribute.String(AttrDBNamespace, t.namespace))
	}
	return attributes
}

// retrying takes note that an attempt failed and that another will follow.
func (o *observation) retrying(f retry.Failure) {
	o.retries++
	kind := ErrorType(f.Err)
	if counter := o.core.telemetry.retries; counter.Enabled(o.ctx) {
		counter.Add(o.ctx, 1, metric.WithAttributes(append(o.core.telemetry.operationAttributes(o.rq.op),
			attribute.String(AttrErrorType, kind))...))
	}
	if entry := o.core.log.Check(zap.DebugLevel, "attempt failed, there will be another"); entry != nil {
		entry.Write(zap.String(AttrDBOperation, operationName(o.rq.op)), zap.String(AttrNodePath, o.rq.path),
			zap.Int(AttrRetries, o.retries), zap.Duration("wait", f.Wait),
			zap.String(AttrErrorType, kind), zap.Error(f.Err), zapctx.Field(o.ctx))
	}
}

// end ends the observation of an operation that ended with err.
func (o *observation) end(err error) {
	m := measurement{op: o.rq.op}
	if o.rq.failed(err) {
		m.errorType = ErrorType(err)
	}
	m.code = statusCode(err)
	m.host, m.port = o.server()
	if duration := o.core.telemetry.duration; duration.Enabled(o.ctx) {
		duration.Record(o.ctx, time.Since(o.began).Seconds(), o.core.telemetry.recordOptions(m)...)
	}
	if o.span == nil {
		return
	}
	if o.span.IsRecording() {
		o.finishSpan(m, err)
	}
	o.span.End()
}

func (o *observation) finishSpan(m measurement, err error) {
	attributes := m.outcome()
	if port, err := strconv.Atoi(m.port); err == nil && port != DefaultPort {
		attributes = append(attributes, attribute.Int(AttrServerPort, port))
	}
	if o.session != nil {
		attributes = append(attributes, attribute.String(AttrSessionID, sessionKey(o.session.id())))
	}
	if o.retries > 0 {
		attributes = append(attributes, attribute.Int(AttrRetries, o.retries))
	}
	o.span.SetAttributes(attributes...)
	if m.errorType != "" {
		o.span.SetStatus(codes.Error, cause.Join(o.ctx, err).Error())
	}
}

// server returns where the latest attempt went to.
func (o *observation) server() (host, port string) {
	if o.session == nil {
		return "", ""
	}
	host, port, err := net.SplitHostPort(o.session.serverAddr())
	if err != nil {
		return "", ""
	}
	return host, port
}

// A measurement is what tells one measured duration of operations from others.
type measurement struct{ op, errorType, code, host, port string }

// outcome returns the attributes that are known when an operation has ended, and
// are both the span's and the metrics'.
func (m measurement) outcome() []attribute.KeyValue {
	var attributes []attribute.KeyValue
	for _, a := range []struct{ key, value string }{
		{AttrServerAddress, m.host}, {AttrErrorType, m.errorType}, {AttrDBStatusCode, m.code},
	} {
		if a.value != "" {
			attributes = append(attributes, attribute.String(a.key, a.value))
		}
	}
	return attributes
}

// recordOptions returns m's attributes as they are recorded.
func (t *telemetry) recordOptions(m measurement) []metric.RecordOption {
	m.port = "" // not on metrics
	if known, ok := t.measurements.Load(m); ok {
		return known.([]metric.RecordOption)
	}
	set := attribute.NewSet(append(t.operationAttributes(m.op), m.outcome()...)...)
	known, _ := t.measurements.LoadOrStore(m, []metric.RecordOption{metric.WithAttributeSet(set)})
	return known.([]metric.RecordOption)
}
