package tarryotel

import (
	"cmp"
	"context"
	"log/slog"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Config configures a Tracing. The zero value and nil are valid.
type Config struct {
	// TracerProvider makes the spans. Default: otel.GetTracerProvider().
	TracerProvider trace.TracerProvider

	// Propagator carries contexts in message headers. Default: the argument of an earlier
	// otel.SetTextMapPropagator, else the W3C's trace context and baggage.
	Propagator propagation.TextMapPropagator

	// CreateSpans gives each message of PushMany and PushAtomic its own span, named create,
	// besides that of the call. The message then carries the context of its own span. Default:
	// all messages of a call carry the context of the call's span.
	CreateSpans bool
}

// Tracing traces pushes by Push and handlers by Handle. It is safe for concurrent use.
type Tracing struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	create     bool
}

// scope is the instrumentation scope of the spans.
const scope = "github.com/tarryhq/tarry/tarryotel"

// New returns a Tracing. cfg may be nil.
func New(cfg *Config) *Tracing {
	c := *cmp.Or(cfg, new(Config))
	c.TracerProvider = cmp.Or(c.TracerProvider, otel.GetTracerProvider())
	if c.Propagator == nil {
		if c.Propagator = otel.GetTextMapPropagator(); len(c.Propagator.Fields()) == 0 {
			c.Propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
		}
	}
	return &Tracing{
		tracer:     c.TracerProvider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
		propagator: c.Propagator,
		create:     c.CreateSpans,
	}
}

// LogHandler returns a handler that adds trace_id and span_id to log lines if their context has
// a span, as in slog.InfoContext within a traced handler.
func LogHandler(h slog.Handler) slog.Handler { return logHandler{h} }

type logHandler struct{ slog.Handler }

// Handle adds the ids.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns the handler with more attributes.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup returns the handler with a group opened.
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
