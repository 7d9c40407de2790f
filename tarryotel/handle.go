package tarryotel

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/tarryhq/tarry"
)

// Handle is a tarry.Middleware: each message has a span while its handler runs, including
// guard and decoding. The span links to the context that the message carries, which is not
// its parent. Its parent is the span of the handler's context, if there is one, as in a
// claim during a request. The handler's context has the message's baggage.
//
// Topic.Claim has no worker; give it this middleware by tarry.WithMiddleware.
func (t *Tracing) Handle(next tarry.HandlerFunc) tarry.HandlerFunc {
	return func(ctx context.Context, m *tarry.Message[[]byte]) error {
		var links []trace.Link
		if len(m.Headers) > 0 {
			with := t.propagator.Extract(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), headers(m.Headers))
			if sc := trace.SpanContextFromContext(with); sc.IsValid() {
				links = []trace.Link{{SpanContext: sc}}
			}
			ctx = trace.ContextWithSpan(with, trace.SpanFromContext(ctx))
		}
		ctx, span := t.tracer.Start(ctx, handleSpan+" "+m.Queue,
			trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(handleAttrs(m)...), trace.WithLinks(links...))
		defer span.End() // deferred directly, so that it sees a panic
		returned := false
		defer failUnlessReturned(span, &returned)
		err := next(ctx, m)
		returned = true
		if span.IsRecording() {
			concluded(span, err)
		}
		return err
	}
}

// concluded records a handler's result in its span.
func concluded(span trace.Span, err error) {
	do := tarry.Verdict(err)
	switch do {
	case tarry.DoAck:
		span.SetAttributes(outcomeKey.String("ack"))
	case tarry.DoSnooze:
		span.SetAttributes(outcomeKey.String("snooze"))
	case tarry.DoRetry, tarry.DoBury:
		span.SetAttributes(outcomeKey.String(do.String()))
		fault(span, err)
	default:
		span.SetAttributes(outcomeKey.String("settled"))
	}
}
