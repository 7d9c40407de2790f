package tarryotel

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Config sets up a Tracing. The zero value, and a nil Config, work.
type Config struct {
	// TracerProvider makes the spans. Default: otel.GetTracerProvider().
	TracerProvider trace.TracerProvider

	// Propagator carries contexts in the headers of messages. Default: what
	// otel.SetTextMapPropagator was given, if it was by then; else the W3C's trace context
	// and baggage.
	Propagator propagation.TextMapPropagator

	// CreateSpans gives each message of PushMany and PushAtomic a span of its own, named
	// create, beside that of the call, and its context to the message. Default: all
	// messages of a call carry the context of the one span that the call has.
	CreateSpans bool
}

// Tracing traces pushes by Push and handlers by Handle. It may be used by many goroutines.
type Tracing struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	create     bool
}

// scope is the name under which spans tell who made them.
const scope = "github.com/tarryhq/tarry/tarryotel"

// New returns a Tracing. cfg may be nil.
func New(cfg *Config) *Tracing {
	var c Config
	if cfg != nil {
		c = *cfg
	}
	if c.TracerProvider == nil {
		c.TracerProvider = otel.GetTracerProvider()
	}
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
