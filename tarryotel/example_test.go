package tarryotel_test

import (
	"context"
	"fmt"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/tarryotel"
)

func Example() {
	// A program has an exporter here that sends spans on, and sets it up for all by
	// otel.SetTracerProvider.
	out := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(out))
	tracing := tarryotel.New(&tarryotel.Config{TracerProvider: provider})

	ctx, cancel := context.WithCancel(context.Background())
	c := tarry.New(memengine.New(nil), &tarry.Config{
		PushMiddleware: []tarry.PushMiddleware{tracing.Push},
	})
	w := tarry.NewWorker(c, &tarry.WorkerConfig{
		Middleware: []tarry.Middleware{tracing.Handle},
	})
	unpaid := tarry.NewTopic[string]("order.unpaid")
	tarry.Handle(w, unpaid, func(ctx context.Context, m *tarry.Message[string]) error {
		cancel() // enough for an example; ctx has the span
		return nil
	})
	if _, err := unpaid.Push(ctx, c, "42", tarry.In(10*time.Millisecond)); err != nil {
		fmt.Println(err)
	}
	if err := w.Run(ctx); err != nil {
		fmt.Println(err)
	}

	spans := out.GetSpans()
	push, handle := spans[0], spans[1]
	fmt.Println(push.SpanKind, push.Name)
	fmt.Println(handle.SpanKind, handle.Name)
	fmt.Println("a link to the push:", handle.Links[0].SpanContext.SpanID() == push.SpanContext.SpanID())
	// Output:
	// producer push order.unpaid
	// consumer handle order.unpaid
	// a link to the push: true
}
