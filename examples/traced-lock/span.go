package main

import (
	"context"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// A span is what the supervisor is told of one.
type span struct {
	Service    string            `json:"service"`
	Trace      string            `json:"trace"`
	ID         string            `json:"id"`
	Parent     string            `json:"parent"`
	Name       string            `json:"name"`
	Start      time.Time         `json:"start"`
	Duration   time.Duration     `json:"duration"`
	Attributes map[string]string `json:"attributes"`
	Links      []link            `json:"links"`
}

type link struct {
	Trace, ID, Kind string
}

// An exporter sends spans to the supervisor.
type exporter struct {
	service string
	to      *outlet
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *exporter) ExportSpans(_ context.Context, ended []sdktrace.ReadOnlySpan) error {
	for _, s := range ended {
		exported := &span{
			Service:    e.service,
			Trace:      s.SpanContext().TraceID().String(),
			ID:         s.SpanContext().SpanID().String(),
			Name:       s.Name(),
			Start:      s.StartTime(),
			Duration:   s.EndTime().Sub(s.StartTime()),
			Attributes: make(map[string]string),
		}
		if s.Parent().IsValid() {
			exported.Parent = s.Parent().SpanID().String()
		}
		for _, a := range s.Attributes() {
			exported.Attributes[string(a.Key)] = a.Value.String()
		}
		for _, l := range s.Links() {
			kind := ""
			for _, a := range l.Attributes {
				kind = a.Value.String()
			}
			exported.Links = append(exported.Links, link{l.SpanContext.TraceID().String(), l.SpanContext.SpanID().String(), kind})
		}
		if err := e.to.send(message{Span: exported}); err != nil {
			return err
		}
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (e *exporter) Shutdown(context.Context) error { return nil }
