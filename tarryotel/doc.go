// Package tarryotel traces pushes and handlers with OpenTelemetry. It needs its API alone:
// where spans go is for the program's SDK to say.
//
//	tracing := tarryotel.New(nil) // the global TracerProvider and propagator
//	c, err := tarry.Open(ctx, "disk:tarry-data", &tarry.Config{
//		PushMiddleware: []tarry.PushMiddleware{tracing.Push},
//	})
//	w := tarry.NewWorker(c, &tarry.WorkerConfig{
//		Middleware: []tarry.Middleware{tracing.Handle},
//	})
//
// A push is a span of kind PRODUCER, whose context travels in the message's headers:
// traceparent, tracestate and baggage where the propagator is that of W3C. The handler's
// span, of kind CONSUMER, begins a trace of its own and has a link to it: what is handled
// two days later would else make one trace of two days. Names and attributes follow the
// conventions for messaging; docs/tracing.md lists them.
package tarryotel
