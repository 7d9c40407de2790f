package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/cli/otlp"
	"github.com/tarryhq/tarry/tarryotel"
)

// spans exports OpenTelemetry spans of pushes and forwarded messages, or does nothing.
type spans struct {
	push   []tarry.PushMiddleware
	handle []tarry.Middleware
	end    func() // sends the last spans
}

// spansPatience is how long sending the last spans may take when serve ends.
const spansPatience = 5 * time.Second

// exportSpans exports spans if an environment variable asks for it. Package otlp and the SDK
// read the other variables.
func (p *Program) exportSpans(ctx context.Context, logger *slog.Logger) (*spans, error) {
	if !p.wantsSpans() {
		return &spans{end: func() {}}, nil
	}
	exporter, err := otlp.New(p.env, p.Stdout, "tarry/"+readBuild().Version)
	if err != nil {
		return nil, usagef("", "traces cannot be exported: %v", err)
	}
	// The resource in the environment overrides these attributes.
	res, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("tarry"), semconv.ServiceVersion(readBuild().Version)), resource.WithFromEnv())
	if err != nil {
		_ = exporter.Shutdown(ctx)
		return nil, usagef("it is NAME=VALUE,NAME=VALUE", "OTEL_RESOURCE_ATTRIBUTES: %v", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	tracing := tarryotel.New(&tarryotel.Config{
		TracerProvider: provider,
		// The server reads this format from requests, so OTEL_PROPAGATORS does not count.
		Propagator: propagation.TraceContext{},
	})
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("traces are lost", "error", err) }))
	return &spans{[]tarry.PushMiddleware{tracing.Push}, []tarry.Middleware{tracing.Handle}, func() {
		ctx, cancel := context.WithTimeout(context.Background(), spansPatience)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			logger.Warn(fmt.Sprintf("the last traces could not be sent within %s", spansPatience), "error", err)
		}
	}}, nil
}

// wantsSpans reports whether an environment variable asks for traces.
func (p *Program) wantsSpans() bool {
	if off, _ := p.env("OTEL_SDK_DISABLED"); strings.EqualFold(off, "true") {
		return false
	}
	if exporter, ok := p.env("OTEL_TRACES_EXPORTER"); ok {
		return exporter != "none"
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		if _, ok := p.env(name); ok {
			return true
		}
	}
	return false
}
