package tarryotel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/leaktest"
	"github.com/tarryhq/tarry/tarryotel"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// bench is a client whose pushes are traced, and who gets the spans.
type bench struct {
	testing.TB
	c       *tarry.Client
	tracing *tarryotel.Tracing
	tracer  trace.Tracer // the program's own
	out     *tracetest.InMemoryExporter
}

// bubble runs f in a synctest bubble.
func bubble(t *testing.T, cfg tarryotel.Config, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{TB: t, out: tracetest.NewInMemoryExporter()}
		p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(b.out))
		b.tracer = p.Tracer("test")
		if cfg.TracerProvider == nil {
			cfg.TracerProvider = p
		}
		b.tracing = tarryotel.New(&cfg)
		eng := memengine.New(nil)
		b.c = tarry.New(eng, &tarry.Config{
			PushMiddleware: []tarry.PushMiddleware{b.tracing.Push},
			Logger:         slog.New(slog.DiscardHandler),
		})
		f(b)
		if err := errors.Join(b.c.Close(), eng.Close()); err != nil {
			t.Error(err)
		}
	})
}

var text = tarry.NewTopic[string]("order.unpaid")

// work runs a traced worker until it is stopped.
func (b *bench) work(handler func(context.Context, *tarry.Message[string]) error) (stop func()) {
	w := tarry.NewWorker(b.c, &tarry.WorkerConfig{Middleware: []tarry.Middleware{b.tracing.Handle}})
	tarry.Handle(w, text, handler)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}

// spans are those with a name, in the order in which they ended.
func (b *bench) spans(name string) (all tracetest.SpanStubs) {
	for _, s := range b.out.GetSpans() {
		if s.Name == name {
			all = append(all, s)
		}
	}
	return all
}

// span is the only one with its name.
func (b *bench) span(name string) tracetest.SpanStub {
	b.Helper()
	all := b.spans(name)
	if len(all) != 1 {
		var names []string
		for _, s := range b.out.GetSpans() {
			names = append(names, s.Name)
		}
		b.Fatalf("%d spans are named %q; there are %q", len(all), name, names)
	}
	return all[0]
}

func (b *bench) attributes(attrs []attribute.KeyValue, want string) {
	b.Helper()
	var got []string
	for _, a := range attrs {
		got = append(got, fmt.Sprintf("%s=%s", strings.TrimPrefix(string(a.Key), "messaging."), a.Value.String()))
	}
	if slices.Sort(got); strings.Join(got, " ") != want {
		b.Errorf("attributes\n%s\nwant\n%s", strings.Join(got, " "), want)
	}
}

// linked wants a span to have a link to each of others, and to nothing else.
func (b *bench) linked(s tracetest.SpanStub, to ...trace.SpanContext) {
	b.Helper()
	var got, want []string
	for _, l := range s.Links {
		got = append(got, l.SpanContext.TraceID().String()+" "+l.SpanContext.SpanID().String())
	}
	for _, sc := range to {
		want = append(want, sc.TraceID().String()+" "+sc.SpanID().String())
	}
	if !slices.Equal(got, want) {
		b.Errorf("%s has links to %q, want %q", s.Name, got, want)
	}
}

func (b *bench) headers(queue string, id tarry.ID) map[string]string {
	b.Helper()
	info, err := b.c.Get(b.Context(), tarry.ByID(id).Of(queue))
	if err != nil {
		b.Fatal(err)
	}
	all := make(map[string]string)
	for _, h := range info.Headers {
		all[h.Name] = h.Value
	}
	return all
}

const (
	foreign      = "00-11111111111111111111111111111111-2222222222222222-01"
	foreignTrace = "11111111111111111111111111111111"
)

func foreignContext() trace.SpanContext {
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": foreign}))
}

func TestHandledTwoDaysLater(t *testing.T) {
	bubble(t, tarryotel.Config{}, func(b *bench) {
		var inside trace.SpanContext
		stop := b.work(func(ctx context.Context, m *tarry.Message[string]) error {
			inside = trace.SpanContextFromContext(ctx)
			return nil
		})
		ctx, ride := b.tracer.Start(b.Context(), "ride")
		p, err := text.Push(ctx, b.c, "42", tarry.In(48*time.Hour), tarry.Key("42"))
		if err != nil {
			b.Fatal(err)
		}
		ride.End()
		push := b.span("push order.unpaid")
		if push.SpanKind != trace.SpanKindProducer || push.Parent.SpanID() != ride.SpanContext().SpanID() {
			b.Errorf("the push is %v of %v, want a producer of %v", push.SpanKind, push.Parent.SpanID(), ride.SpanContext().SpanID())
		}
		b.attributes(push.Attributes, "destination.name=order.unpaid message.id="+p.ID.String()+
			" operation.name=push operation.type=send system=tarry tarry.message.key=42 tarry.outcome=created")
		b.linked(push)
		sc := push.SpanContext
		if got, want := b.headers("order.unpaid", p.ID), fmt.Sprintf("00-%s-%s-01", sc.TraceID(), sc.SpanID()); len(got) != 1 || got["traceparent"] != want {
			b.Errorf("the message has %v, want traceparent %s", got, want)
		}

		time.Sleep(48 * time.Hour)
		stop()
		handle := b.span("handle order.unpaid")
		if handle.SpanKind != trace.SpanKindConsumer || handle.Parent.IsValid() || handle.SpanContext.TraceID() == sc.TraceID() {
			b.Errorf("the handler's span is %v of %v in the trace %v; want a consumer at the root of a trace of its own", handle.SpanKind, handle.Parent, handle.SpanContext.TraceID())
		}
		b.linked(handle, sc)
		if !inside.Equal(handle.SpanContext) {
			b.Error("the handler's context has another span")
		}
		if d := handle.StartTime.Sub(push.EndTime); d < 48*time.Hour || d > 48*time.Hour+time.Second {
			b.Errorf("it began %s after the push", d)
		}
		b.attributes(handle.Attributes, "destination.name=order.unpaid message.id="+p.ID.String()+" operation.name=handle operation.type=process"+
			" system=tarry tarry.message.delivery_attempt=1 tarry.message.due="+p.Due.UTC().Format("2006-01-02T15:04:05.000Z07:00")+" tarry.message.key=42 tarry.outcome=ack")
		if handle.Status.Code != codes.Unset || handle.InstrumentationScope.Name != "github.com/tarryhq/tarry/tarryotel" || handle.InstrumentationScope.SchemaURL == "" {
			b.Errorf("status %v, scope %v", handle.Status, handle.InstrumentationScope)
		}
	})
}

// What becomes of a message stands in the span of its handler.
func TestHandleTellsTheOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		handler func() error
		outcome string
		kind    string // error.type
	}{
		"retries":  {func() error { return fmt.Errorf("no: %w", context.DeadlineExceeded) }, "retry", "context.deadlineExceededError"},
		"retry in": {func() error { return tarry.RetryIn(time.Hour, nil) }, "retry", "retry"},
		"buries":   {func() error { return tarry.Bury(errors.New("hopeless")) }, "bury", "*errors.errorString"},
		"snoozes":  {func() error { return tarry.Snooze(time.Hour) }, "snooze", ""},
		"ours":     {func() error { return &tarry.Error{Op: "cancel", Err: tarry.ErrLeased} }, "retry", "leased"},
		"panics":   {func() error { panic("boo") }, "", "panic"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, tarryotel.Config{}, func(b *bench) {
				stop := b.work(func(context.Context, *tarry.Message[string]) error { return tc.handler() })
				if _, err := text.Push(b.Context(), b.c, "x", tarry.Backoff(time.Hour)); err != nil {
					b.Fatal(err)
				}
				stop()
				s := b.span("handle order.unpaid")
				set := attribute.NewSet(s.Attributes...)
				outcome, _ := set.Value("messaging.tarry.outcome")
				kind, _ := set.Value("error.type")
				if outcome.AsString() != tc.outcome || kind.AsString() != tc.kind || (s.Status.Code == codes.Error) != (tc.kind != "") {
					b.Errorf("outcome %q, error.type %q, status %v", outcome.AsString(), kind.AsString(), s.Status)
				}
				if name == "panics" && len(s.Events) == 0 {
					b.Error("the panic is not told")
				}
			})
		})
	}
}

func TestEachAttemptHasASpan(t *testing.T) {
	bubble(t, tarryotel.Config{}, func(b *bench) {
		stop := b.work(func(_ context.Context, m *tarry.Message[string]) error {
			if m.Attempt < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		if _, err := text.Push(b.Context(), b.c, "x", tarry.Backoff(time.Minute)); err != nil {
			b.Fatal(err)
		}
		time.Sleep(time.Hour)
		stop()
		all := b.spans("handle order.unpaid")
		if len(all) != 3 {
			b.Fatalf("%d spans", len(all))
		}
		for i, s := range all {
			b.linked(s, b.span("push order.unpaid").SpanContext)
			set := attribute.NewSet(s.Attributes...)
			if n, _ := set.Value("messaging.tarry.message.delivery_attempt"); n.AsInt64() != int64(i+1) {
				b.Errorf("the attempt is %d, want %d", n.AsInt64(), i+1)
			}
		}
	})
}

// A context that the producer put into the message stays, whatever the case of its name.
func TestPushKeepsAContextOfTheProducer(t *testing.T) {
	for _, within := range []bool{false, true} {
		t.Run(fmt.Sprint("within a span: ", within), func(t *testing.T) {
			bubble(t, tarryotel.Config{}, func(b *bench) {
				ctx, parent := b.Context(), foreignContext()
				if within {
					var span trace.Span
					ctx, span = b.tracer.Start(ctx, "request")
					parent = span.SpanContext()
				}
				p, err := text.Push(ctx, b.c, "x", tarry.Header("Traceparent", foreign))
				if err != nil {
					b.Fatal(err)
				}
				s := b.span("push order.unpaid")
				if s.SpanKind != trace.SpanKindClient || s.Parent.SpanID() != parent.SpanID() || s.SpanContext.TraceID() != parent.TraceID() {
					b.Errorf("the push is %v of %v, want a client of %v", s.SpanKind, s.Parent.SpanID(), parent.SpanID())
				}
				b.linked(s, foreignContext())
				if got := b.headers("order.unpaid", p.ID); len(got) != 1 || got["Traceparent"] != foreign {
					b.Errorf("the message has %v", got)
				}
			})
		})
	}
}

func TestPushReplacesAContextThatIsNone(t *testing.T) {
	bubble(t, tarryotel.Config{}, func(b *bench) {
		p, err := text.Push(b.Context(), b.c, "x", tarry.Header("traceparent", "nonsense"), tarry.Header("a", "b"))
		if err != nil {
			b.Fatal(err)
		}
		if got := b.headers("order.unpaid", p.ID); len(got) != 2 || !strings.Contains(got["traceparent"], b.span("push order.unpaid").SpanContext.SpanID().String()) {
			b.Errorf("the message has %v", got)
		}
	})
}

func TestPushMany(t *testing.T) {
	drafts := []tarry.Draft{
		tarry.NewDraft("a", nil, tarry.Key("k")), tarry.NewDraft("a", nil, tarry.Key("k")),
		tarry.NewDraft("b", nil, tarry.Header("traceparent", foreign)),
	}
	bubble(t, tarryotel.Config{}, func(b *bench) {
		ps, err := b.c.PushMany(b.Context(), drafts)
		if err != nil {
			b.Fatal(err)
		}
		s := b.span("push") // of two queues
		if s.SpanKind != trace.SpanKindProducer || s.Status.Code != codes.Error {
			b.Errorf("the push is %v with status %v", s.SpanKind, s.Status)
		}
		b.linked(s, foreignContext())
		b.attributes(s.Attributes, "batch.message_count=3 error.type=exists operation.name=push operation.type=send system=tarry tarry.batch.failed_count=1")
		if got := b.headers("a", ps[0].ID)["traceparent"]; !strings.Contains(got, s.SpanContext.SpanID().String()) {
			b.Errorf("the first message has %q", got)
		}
		if got := b.headers("b", ps[2].ID)["traceparent"]; got != foreign {
			b.Errorf("the third message has %q", got)
		}
		if len(drafts[0].Headers) > 0 {
			b.Error("the caller's draft was changed")
		}
	})
	bubble(t, tarryotel.Config{CreateSpans: true}, func(b *bench) {
		ps, err := b.c.PushAtomic(b.Context(), []tarry.Draft{drafts[0], tarry.NewDraft("a", nil)})
		if err != nil {
			b.Fatal(err)
		}
		s, made := b.span("push a"), b.spans("create a")
		if len(made) != 2 || made[0].SpanKind != trace.SpanKindProducer || s.SpanKind != trace.SpanKindClient {
			b.Fatalf("%d messages were made; the push is %v", len(made), s.SpanKind)
		}
		b.linked(s, made[0].SpanContext, made[1].SpanContext)
		b.attributes(made[0].Attributes, "destination.name=a operation.name=create operation.type=create system=tarry tarry.message.key=k")
		for i, p := range ps {
			if got := b.headers("a", p.ID)["traceparent"]; !strings.Contains(got, made[i].SpanContext.SpanID().String()) {
				b.Errorf("[%d] has %q", i, got)
			}
		}
	})
}

func TestPushFails(t *testing.T) {
	bubble(t, tarryotel.Config{}, func(b *bench) {
		if _, err := text.Push(b.Context(), b.c, "x", tarry.MaxAttempts(tarry.MaxMaxAttempts+1)); !errors.Is(err, tarry.ErrInvalid) {
			b.Fatal(err)
		}
		s := b.span("push order.unpaid")
		b.attributes(s.Attributes, "destination.name=order.unpaid error.type=invalid operation.name=push operation.type=send system=tarry")
		if s.Status.Code != codes.Error || !strings.Contains(s.Status.Description, "attempts") {
			b.Errorf("status %v", s.Status)
		}
	})
}

// Baggage goes with the message where there is room; it never makes a push fail.
func TestBaggage(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "too large": 7000} {
		t.Run(name, func(t *testing.T) {
			bubble(t, tarryotel.Config{}, func(b *bench) {
				var got string
				stop := b.work(func(ctx context.Context, m *tarry.Message[string]) error {
					got = baggage.FromContext(ctx).Member("user").Value()
					return nil
				})
				value := strings.Repeat("x", size)
				member, err := baggage.NewMember("user", value)
				if err != nil {
					b.Fatal(err)
				}
				bag, err := baggage.New(member)
				if err != nil {
					b.Fatal(err)
				}
				ctx := baggage.ContextWithBaggage(b.Context(), bag)
				if _, err := text.Push(ctx, b.c, "x", tarry.Header("large", strings.Repeat("y", 2000))); err != nil {
					b.Fatal(err)
				}
				stop()
				if size > 1000 {
					value = ""
				}
				if got != value {
					b.Errorf("the handler got %d bytes of baggage, want %d", len(got), len(value))
				}
				b.linked(b.span("handle order.unpaid"), b.span("push order.unpaid").SpanContext)
			})
		})
	}
}

// A claim is handled within what its caller does, and has a link all the same.
func TestClaimWithinARequest(t *testing.T) {
	bubble(t, tarryotel.Config{}, func(b *bench) {
		if _, err := text.Push(b.Context(), b.c, "x", tarry.Key("k")); err != nil {
			b.Fatal(err)
		}
		ctx, request := b.tracer.Start(b.Context(), "GET /orders/k")
		err := text.Claim(ctx, b.c, tarry.ByKey("k"), func(context.Context, *tarry.Message[string]) error { return nil },
			tarry.WithMiddleware(b.tracing.Handle))
		if err != nil {
			b.Fatal(err)
		}
		s := b.span("handle order.unpaid")
		if s.Parent.SpanID() != request.SpanContext().SpanID() {
			b.Errorf("its parent is %v", s.Parent.SpanID())
		}
		b.linked(s, b.span("push order.unpaid").SpanContext)
	})
}

// A follow-up that a handler pushes belongs to its trace.
func TestHandlerPushes(t *testing.T) {
	bubble(t, tarryotel.Config{}, func(b *bench) {
		stop := b.work(func(ctx context.Context, _ *tarry.Message[string]) error {
			_, err := b.c.Push(ctx, "order.cancelled", nil)
			return err
		})
		if _, err := text.Push(b.Context(), b.c, "x"); err != nil {
			b.Fatal(err)
		}
		stop()
		if next, s := b.span("push order.cancelled"), b.span("handle order.unpaid"); next.Parent.SpanID() != s.SpanContext.SpanID() {
			b.Errorf("the follow-up's parent is %v, want %v", next.Parent.SpanID(), s.SpanContext.SpanID())
		}
	})
}

// Without spans nothing goes into headers, and what a message carries stays.
func TestNoSpans(t *testing.T) {
	bubble(t, tarryotel.Config{TracerProvider: noop.NewTracerProvider()}, func(b *bench) {
		stop := b.work(func(context.Context, *tarry.Message[string]) error { return nil })
		for _, opt := range []tarry.PushOption{tarry.Header("a", "b"), tarry.Header("traceparent", foreign)} {
			p, err := text.Push(b.Context(), b.c, "x", opt, tarry.In(time.Minute))
			if err != nil {
				b.Fatal(err)
			}
			if got := b.headers("order.unpaid", p.ID); len(got) != 1 {
				b.Errorf("the message has %v", got)
			}
		}
		time.Sleep(time.Hour)
		stop()
		if n := len(b.out.GetSpans()); n > 0 {
			b.Errorf("%d spans", n)
		}
	})
}

func TestDefaults(t *testing.T) {
	out := tracetest.NewInMemoryExporter()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(out)))
	defer otel.SetTracerProvider(before)
	tracing := tarryotel.New(nil)
	eng := memengine.New(nil)
	defer eng.Close()
	c := tarry.New(eng, &tarry.Config{PushMiddleware: []tarry.PushMiddleware{tracing.Push}})
	defer c.Close()
	p, err := c.Push(t.Context(), "q", nil)
	if err != nil {
		t.Fatal(err)
	}
	info, err := c.Get(t.Context(), tarry.ByID(p.ID).Of("q"))
	if err != nil || len(info.Headers) != 1 || info.Headers[0].Name != "traceparent" || len(out.GetSpans()) != 1 {
		t.Errorf("headers %v, %d spans, %v", info.Headers, len(out.GetSpans()), err)
	}
}

func TestLogHandler(t *testing.T) {
	var buf bytes.Buffer
	log := slog.New(tarryotel.LogHandler(slog.NewTextHandler(&buf, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))).With("a", 1)
	log.InfoContext(trace.ContextWithSpanContext(t.Context(), foreignContext()), "hello")
	log.InfoContext(t.Context(), "hello")
	want := "level=INFO msg=hello a=1 trace_id=" + foreignTrace + " span_id=2222222222222222\nlevel=INFO msg=hello a=1\n"
	if buf.String() != want {
		t.Errorf("logged\n%swant\n%s", &buf, want)
	}
}
