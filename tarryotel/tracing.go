package tarryotel

import (
	"cmp"

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
