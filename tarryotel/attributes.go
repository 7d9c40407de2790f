package tarryotel

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// The first words of span names, also used as messaging.operation.name.
const (
	pushSpan   = "push"
	createSpan = "create"
	handleSpan = "handle"
)

// Attributes that have no name in the conventions.
const (
	keyKey      = attribute.Key("messaging.tarry.message.key")
	dueKey      = attribute.Key("messaging.tarry.message.due")              // RFC 3339 in UTC
	attemptKey  = attribute.Key("messaging.tarry.message.delivery_attempt") // the first is 1
	outcomeKey  = attribute.Key("messaging.tarry.outcome")
	failedKey   = attribute.Key("messaging.tarry.batch.failed_count")
	conflictKey = attribute.Key("messaging.tarry.on_conflict")
)

const dueLayout = "2006-01-02T15:04:05.000Z07:00"

var (
	system      = semconv.MessagingSystemKey.String("tarry")
	pushName    = semconv.MessagingOperationName(pushSpan)
	createName  = semconv.MessagingOperationName(createSpan)
	handleName  = semconv.MessagingOperationName(handleSpan)
	sendType    = semconv.MessagingOperationTypeSend
	createType  = semconv.MessagingOperationTypeCreate
	processType = semconv.MessagingOperationTypeProcess
)

func destination(queue string) attribute.KeyValue { return semconv.MessagingDestinationName(queue) }
func messageID(id tarry.ID) attribute.KeyValue    { return semconv.MessagingMessageID(id.String()) }
func batch(n int) attribute.KeyValue              { return semconv.MessagingBatchMessageCount(n) }
func errorType(what string) attribute.KeyValue    { return semconv.ErrorTypeKey.String(what) }
func dueAt(t time.Time) attribute.KeyValue        { return dueKey.String(t.UTC().Format(dueLayout)) }

// messageAttrs returns the attributes of a push's message.
func messageAttrs(m *tarry.Draft) (attrs []attribute.KeyValue) {
	if m.Key != "" {
		attrs = append(attrs, keyKey.String(m.Key))
	}
	if m.OnConflict != tarry.Reject {
		attrs = append(attrs, conflictKey.String(m.OnConflict.String()))
	}
	return attrs
}

// createAttrs returns the attributes of a create span.
func createAttrs(m *tarry.Draft) []attribute.KeyValue {
	return append([]attribute.KeyValue{system, createName, createType, destination(m.Queue)}, messageAttrs(m)...)
}

// linkAttrs returns the attributes of a link to one of n messages. A single message has none,
// since the span has them.
func linkAttrs(m *tarry.Draft, n int) []attribute.KeyValue {
	if n == 1 {
		return nil
	}
	return append([]attribute.KeyValue{destination(m.Queue)}, messageAttrs(m)...)
}

// handleAttrs returns the attributes of a handler's span.
func handleAttrs(m *tarry.Message[[]byte]) []attribute.KeyValue {
	attrs := append(make([]attribute.KeyValue, 0, 8), system, handleName, processType, destination(m.Queue), messageID(m.ID),
		attemptKey.Int64(int64(m.Attempt)), dueAt(m.Due))
	if m.Key != "" {
		attrs = append(attrs, keyKey.String(m.Key))
	}
	return attrs
}

// fault marks a span as failed. The type of a tarry error is its code in the HTTP API, such
// as exists; of others, the Go type.
func fault(span trace.Span, err error) {
	defer func() { _ = recover() }() // the error's methods may panic
	kind := semconv.ErrorType(err)
	if _, ours := errors.AsType[*tarry.Error](err); ours {
		kind = errorType(engine.Code(err))
	}
	span.SetAttributes(kind)
	span.SetStatus(codes.Error, err.Error())
}

// failUnlessReturned marks a span as failed unless its function has returned.
func failUnlessReturned(span trace.Span, returned *bool) {
	if !*returned {
		span.SetAttributes(errorType("panic"))
		span.SetStatus(codes.Error, "it panicked, or ended its goroutine")
	}
}

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
