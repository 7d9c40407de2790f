package server

import (
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tarryhq/tarry/engine"
)

// The headers of the W3C's trace context, in requests as in messages.
const (
	traceParent = "traceparent"
	traceState  = "tracestate"
)

// maxTraceState is the longest tracestate that is kept; the W3C requires at least this.
const maxTraceState = 512

// traceContext is the trace context of a request, which is added to its messages for their
// handlers. Baggage is not: every consumer would see it, so a producer must add it itself.
type traceContext []engine.Header

// traceOf returns the trace context of a request; nil if it has none or it is malformed.
func traceOf(r *http.Request) traceContext {
	parent := r.Header.Get(traceParent)
	if traceID(parent) == "" {
		return nil
	}
	t := traceContext{{Name: traceParent, Value: parent}}
	if state := strings.Join(r.Header.Values(traceState), ","); state != "" && len(state) <= maxTraceState && printable(state) {
		t = append(t, engine.Header{Name: traceState, Value: state})
	}
	return t
}

// into adds the context to a message that has none, unless its headers would exceed their
// limits.
func (t traceContext) into(m *engine.Message) {
	if t == nil {
		return
	}
	bytes := len(m.ContentType)
	for _, h := range m.Headers {
		if strings.EqualFold(h.Name, traceParent) || strings.EqualFold(h.Name, traceState) {
			return
		}
		bytes += len(h.Name) + len(h.Value)
	}
	for _, h := range t {
		bytes += len(h.Name) + len(h.Value)
	}
	if len(m.Headers)+len(t) <= engine.MaxHeaders && bytes <= engine.MaxHeaderBytes {
		m.Headers = append(slices.Clip(m.Headers), t...)
	}
}

// parents matches a version, a trace id, a span id and flags, in lower-case hexadecimal. Versions
// after 00 may have more behind a dash.
var parents = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-[ -~]*)?$`)

// traceID returns the trace id in a traceparent, or "" if that is malformed.
func traceID(parent string) string {
	if len(parent) > engine.MaxHeaderBytes/2 {
		return ""
	}
	m := parents.FindStringSubmatch(parent)
	if m == nil || m[1] == "ff" || m[1] == "00" && m[4] != "" || strings.Trim(m[2], "0") == "" || strings.Trim(m[3], "0") == "" {
		return ""
	}
	return m[2]
}

// printable reports whether s is all printable ASCII.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// logged returns the log attributes of a request, with its trace id, if any.
func logged(r *http.Request, more ...any) []any {
	args := append([]any{"method", r.Method, "path", r.URL.Path}, more...)
	if id := traceID(r.Header.Get(traceParent)); id != "" {
		args = append(args, slog.String("trace_id", id))
	}
	return args
}
