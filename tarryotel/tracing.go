package tarryotel

import (
	"cmp"
	"context"
	"log/slog"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/tarryhq/tarry"
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

// Push is a tarry.PushMiddleware: each call has a span, and its messages carry that context. A
// message that already carries a context, such as one received over HTTP, keeps it, and the
// span links to it. If that message is the only one and the caller's context has no span, the
// span is a child of the message's context.
func (t *Tracing) Push(next tarry.PushFunc) tarry.PushFunc {
	return func(ctx context.Context, call tarry.PushCall) ([]tarry.Pushed, error) {
		p := pushing{t: t, drafts: call.Drafts}
		ctx = p.begin(ctx)
		defer p.span.End() // deferred directly, so that it sees a panic
		returned := false
		defer failUnlessReturned(p.span, &returned)
		out, err := next(ctx, call)
		returned = true
		p.result(out, err)
		return out, err
	}
}

// pushing is a call in progress.
type pushing struct {
	t      *Tracing
	drafts []tarry.Draft
	span   trace.Span
}

// maxLinks bounds the links of a span. It is what SDKs keep by default.
const maxLinks = 128

// begin starts the span and puts its context into the messages.
func (p *pushing) begin(ctx context.Context) context.Context {
	t := p.t
	var links []trace.Link
	link := func(sc trace.SpanContext, m *tarry.Draft) {
		if len(links) < maxLinks {
			links = append(links, trace.Link{SpanContext: sc, Attributes: linkAttrs(m, len(p.drafts))})
		}
	}
	untraced := make([]*tarry.Draft, 0, 1)
	parent := ctx
	for i := range p.drafts {
		m := &p.drafts[i]
		sc := t.carriedContext(m.Headers)
		if !sc.IsValid() {
			untraced = append(untraced, m)
			continue
		}
		link(sc, m)
		if len(p.drafts) == 1 && !trace.SpanContextFromContext(ctx).IsValid() {
			parent = trace.ContextWithRemoteSpanContext(ctx, sc)
		}
	}
	kind := trace.SpanKindClient
	switch {
	case t.create && len(p.drafts) > 1:
		for _, m := range untraced {
			made, span := t.tracer.Start(ctx, createSpan+" "+m.Queue, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(createAttrs(m)...))
			inject(m, t.contextHeaders(made))
			link(span.SpanContext(), m)
			span.End()
		}
		untraced = nil
	case len(untraced) > 0:
		kind = trace.SpanKindProducer
	}
	name, attrs := pushNameAndAttrs(p.drafts)
	ctx, p.span = t.tracer.Start(parent, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...), trace.WithLinks(links...))
	if len(untraced) > 0 {
		add := t.contextHeaders(ctx)
		for _, m := range untraced {
			inject(m, add)
		}
	}
	return ctx
}

// result records the results of the messages in the span.
func (p *pushing) result(out []tarry.Pushed, err error) {
	if !p.span.IsRecording() {
		return
	}
	if err == nil && len(out) == 1 {
		if out[0].ID != 0 {
			p.span.SetAttributes(messageID(out[0].ID))
		}
		if out[0].Outcome != 0 {
			p.span.SetAttributes(outcomeKey.String(out[0].Outcome.String()))
		}
		err = out[0].Err
	}
	if err != nil {
		fault(p.span, err)
		return
	}
	failed := 0
	for i := range out {
		if out[i].Err != nil {
			if failed++; failed == 1 {
				fault(p.span, out[i].Err)
			}
		}
	}
	if failed > 0 {
		p.span.SetAttributes(failedKey.Int(failed))
	}
}

// pushNameAndAttrs returns the name of a call's span and its first attributes.
func pushNameAndAttrs(drafts []tarry.Draft) (string, []attribute.KeyValue) {
	queue := drafts[0].Queue
	for i := range drafts {
		if drafts[i].Queue != queue {
			queue = ""
			break
		}
	}
	attrs := append(make([]attribute.KeyValue, 0, 8), system, pushName, sendType)
	name := pushSpan
	if queue != "" {
		name += " " + queue
		attrs = append(attrs, destination(queue))
	}
	if len(drafts) == 1 {
		return name, append(attrs, messageAttrs(&drafts[0])...)
	}
	return name, append(attrs, batch(len(drafts)))
}

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
