// Package tarryotel traces pushes and handlers with OpenTelemetry. It needs only its API:
// the program's SDK decides where spans go.
//
//	tracing := tarryotel.New(nil) // the global TracerProvider and propagator
//	c, err := tarry.Open(ctx, "disk:tarry-data", &tarry.Config{
//		PushMiddleware: []tarry.PushMiddleware{tracing.Push},
//	})
//	w := tarry.NewWorker(c, &tarry.WorkerConfig{
//		Middleware: []tarry.Middleware{tracing.Handle},
//	})
//
// A push is a span of kind PRODUCER. Its context is stored in the message's headers:
// traceparent, tracestate and baggage with the W3C propagators. The handler's span, of kind
// CONSUMER, starts a new trace with a link to the push: otherwise a message handled two days
// later would make a trace of two days. Names and attributes follow the messaging
// conventions; docs/tracing.md lists them.
package tarryotel
