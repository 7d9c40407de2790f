package tarryotel

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/tarryhq/tarry"
)

// headers are a message's headers for a propagator to read. Names are compared without
// regard to case, since they may have come by HTTP.
type headers []tarry.MessageHeader

// Get returns the value of the first header with this name, or "".
func (hs headers) Get(name string) string {
	for i := range hs {
		if strings.EqualFold(hs[i].Name, name) {
			return hs[i].Value
		}
	}
	return ""
}

// Set does nothing: inject writes.
func (headers) Set(string, string) {}

// Keys returns the names.
func (hs headers) Keys() []string {
	names := make([]string, len(hs))
	for i := range hs {
		names[i] = hs[i].Name
	}
	return names
}

// carriedContext returns the span context that a message carries; it is invalid if the message has
// none.
func (t *Tracing) carriedContext(hs []tarry.MessageHeader) trace.SpanContext {
	if len(hs) == 0 {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(t.propagator.Extract(context.Background(), headers(hs)))
}

// contextHeaders returns the headers that propagate ctx.
func (t *Tracing) contextHeaders(ctx context.Context) (all []tarry.MessageHeader) {
	carrier := propagation.MapCarrier{}
	t.propagator.Inject(ctx, carrier)
	for name, value := range carrier {
		all = append(all, tarry.MessageHeader{Name: name, Value: value})
	}
	// The longest, usually baggage, comes last, since the last may not fit.
	slices.SortFunc(all, func(a, b tarry.MessageHeader) int {
		return cmp.Or(cmp.Compare(len(a.Value), len(b.Value)), strings.Compare(a.Name, b.Name))
	})
	return all
}

// inject sets headers of a message and replaces those with the same names, except for
// existing baggage. A header that exceeds the limits of a message is left out, so that no
// push fails because of it.
func inject(m *tarry.Draft, add []tarry.MessageHeader) {
	bytes := len(m.ContentType)
	for _, h := range m.Headers {
		bytes += len(h.Name) + len(h.Value)
	}
	for _, h := range add {
		at := slices.IndexFunc(m.Headers, func(o tarry.MessageHeader) bool { return strings.EqualFold(o.Name, h.Name) })
		more := len(h.Name) + len(h.Value)
		if at >= 0 {
			more -= len(m.Headers[at].Name) + len(m.Headers[at].Value)
		}
		switch {
		case bytes+more > tarry.MaxHeaderBytes:
			continue
		case at < 0 && len(m.Headers) < tarry.MaxHeaders:
			m.Headers = append(m.Headers, h)
		case at >= 0 && !strings.EqualFold(h.Name, "baggage"):
			m.Headers[at] = h
		default:
			continue
		}
		bytes += more
	}
}
