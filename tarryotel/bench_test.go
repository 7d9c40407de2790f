package tarryotel_test

import (
	"context"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/tarryotel"
)

type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }

// providers are ways to trace, from not at all to every message.
var providers = []struct {
	name string
	make func() trace.TracerProvider
}{
	{"off", func() trace.TracerProvider { return nil }},
	{"noop", func() trace.TracerProvider { return noop.NewTracerProvider() }},
	{"sampled=0%", func() trace.TracerProvider {
		return sdktrace.NewTracerProvider(sdktrace.WithBatcher(discard{}), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0))))
	}},
	{"sampled=1%", func() trace.TracerProvider {
		return sdktrace.NewTracerProvider(sdktrace.WithBatcher(discard{}), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0.01))))
	}},
	{"sampled=100%", func() trace.TracerProvider { return sdktrace.NewTracerProvider(sdktrace.WithBatcher(discard{})) }},
}

// traced are a client's and a worker's configuration.
func traced(p trace.TracerProvider) (cfg *tarry.Config, worker *tarry.WorkerConfig) {
	cfg, worker = new(tarry.Config), new(tarry.WorkerConfig)
	if p != nil {
		t := tarryotel.New(&tarryotel.Config{TracerProvider: p})
		cfg.PushMiddleware, worker.Middleware = []tarry.PushMiddleware{t.Push}, []tarry.Middleware{t.Handle}
	}
	return cfg, worker
}

func shutdown(b *testing.B, p trace.TracerProvider) {
	if p, ok := p.(*sdktrace.TracerProvider); ok {
		if err := p.Shutdown(b.Context()); err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkPush pushes and cancels, so that memory does not fill.
func BenchmarkPush(b *testing.B) {
	for _, with := range providers {
		b.Run(with.name, func(b *testing.B) {
			p := with.make()
			defer shutdown(b, p)
			cfg, _ := traced(p)
			eng := memengine.New(nil)
			defer eng.Close()
			c := tarry.New(eng, cfg)
			defer c.Close()
			body := make([]byte, 200)
			b.ReportAllocs()
			for b.Loop() {
				p, err := c.Push(b.Context(), "q", body)
				if err != nil {
					b.Fatal(err)
				}
				if err := c.Cancel(b.Context(), tarry.ByID(p.ID).Of("q")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPushHandle has each message pushed and handled.
func BenchmarkPushHandle(b *testing.B) {
	for _, with := range providers {
		b.Run(with.name, func(b *testing.B) {
			p := with.make()
			defer shutdown(b, p)
			cfg, worker := traced(p)
			eng := memengine.New(nil)
			defer eng.Close()
			c := tarry.New(eng, cfg)
			defer c.Close()
			w := tarry.NewWorker(c, worker)
			handled := make(chan struct{}, 1000)
			tarry.Handle(w, tarry.NewTopic[[]byte]("q"), func(context.Context, *tarry.Message[[]byte]) error {
				handled <- struct{}{}
				return nil
			})
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { ended <- w.Run(ctx) }()
			body := make([]byte, 200)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if _, err := c.Push(ctx, "q", body); err != nil {
					b.Fatal(err)
				}
				if n++; n > 500 {
					<-handled
				}
			}
			for range min(n, 500) {
				<-handled
			}
			cancel()
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
	}
}
