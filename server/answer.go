package server

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

// answer is the JSON of one answer as it is being written.
type answer struct{ b []byte }

var answers = sync.Pool{New: func() any { return &answer{make([]byte, 0, 4<<10)} }}

// maxPooled is the largest buffer kept for the next request.
const maxPooled = 1 << 20

func newAnswer() *answer {
	a := answers.Get().(*answer)
	a.b = a.b[:0]
	return a
}

func (a *answer) free() {
	if cap(a.b) <= maxPooled {
		answers.Put(a)
	}
}

// jsonType is shared by all answers: headers hold slices.
var jsonType = []string{"application/json"}

// write sends the answer as a whole.
func (a *answer) write(w http.ResponseWriter, status int) error {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(a.b))}
	w.WriteHeader(status)
	_, err := w.Write(a.b)
	return err
}

const timeFormat = "2006-01-02T15:04:05.000Z"

var lastTime = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)

// appendTime appends a time in quotes, null for none.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	t = t.UTC()
	if t.After(lastTime) {
		t = lastTime // RFC 3339 ends here
	}
	b = append(b, '"')
	b = t.AppendFormat(b, timeFormat)
	return append(b, '"')
}

func appendID(b []byte, id engine.ID) []byte {
	b = append(b, '"')
	b = strconv.AppendUint(b, uint64(id), 10)
	return append(b, '"')
}

func appendDuration(b []byte, d time.Duration) []byte {
	b = append(b, '"')
	b = append(b, tarry.FormatDuration(d)...)
	return append(b, '"')
}

// bodies says how the bodies of answered messages are shown.
type bodies uint8

const (
	asJSON  bodies = iota // as JSON where it is JSON, else in base64
	exactly               // always in base64, byte for byte; repeated headers in their order
	noBodies
)

// exactHeader lets a client ask for messages exactly as they are kept.
const exactHeader = "Tarry-Exact"

func wantBodies(r *http.Request) bodies {
	if r.Header.Get(exactHeader) == "true" {
		return exactly
	}
	return asJSON
}

// appendMessage appends a message, with its lease when token is not empty.
func appendMessage(b []byte, m *engine.Info, token string, how bodies) []byte {
	b = append(b, `{"id":`...)
	b = appendID(b, m.ID)
	b = append(b, `,"queue":`...)
	b = appendString(b, m.Queue)
	b = append(b, `,"key":`...)
	b = appendString(b, m.Key)
	b = append(b, `,"state":"`...)
	b = append(b, m.State.String()...)
	b = append(b, `","due":`...)
	b = appendTime(b, m.Due)
	b = append(b, `,"created":`...)
	b = appendTime(b, m.Created)
	b = append(b, `,"attempt":`...)
	b = strconv.AppendUint(b, uint64(m.Attempt), 10)
	b = append(b, `,"max_attempts":`...)
	b = strconv.AppendUint(b, uint64(m.MaxAttempts), 10)
	b = append(b, `,"priority":`...)
	b = strconv.AppendUint(b, uint64(m.Priority), 10)
	b = append(b, `,"ttr":`...)
	b = appendDuration(b, m.TTR)
	if len(m.Backoff) > 0 {
		b = append(b, `,"backoff":[`...)
		for i, d := range m.Backoff {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendDuration(b, d)
		}
		b = append(b, ']')
	}
	if m.ExpireAfter > 0 {
		b = append(b, `,"expire_after":`...)
		b = appendDuration(b, m.ExpireAfter)
	}
	if !m.Expires.IsZero() {
		b = append(b, `,"expires":`...)
		b = appendTime(b, m.Expires)
	}
	b = append(b, `,"headers":`...)
	if how == exactly && repeated(m.Headers) {
		b = appendPairs(b, m.Headers)
	} else {
		b = appendHeaders(b, m.Headers)
	}
	b = append(b, `,"content_type":`...)
	b = appendString(b, m.ContentType)
	b = appendBody(b, m, how)
	b = append(b, `,"last_error":`...)
	b = appendString(b, m.LastError)
	if !m.Died.IsZero() {
		b = append(b, `,"died":`...)
		b = appendTime(b, m.Died)
	}
	if token != "" {
		b = append(b, `,"lease":`...)
		b = appendString(b, token)
	}
	if !m.Deadline.IsZero() {
		b = append(b, `,"lease_expires":`...)
		b = appendTime(b, m.Deadline)
	}
	return append(b, '}')
}

func appendBody(b []byte, m *engine.Info, how bodies) []byte {
	switch {
	case how == noBodies:
		return b
	case how == asJSON && isJSON(m.ContentType) && validJSON(m.Body):
		b = append(b, `,"body":`...)
		return append(b, m.Body...)
	}
	b = append(b, `,"body_base64":"`...)
	b = base64.StdEncoding.AppendEncode(b, m.Body)
	return append(b, '"')
}

func validJSON(body []byte) bool {
	return len(body) > 0 && jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true))
}

// appendHeaders appends an object in the order in which the names first came; a
// name that came more than once has an array of values.
func appendHeaders(b []byte, hs []engine.Header) []byte {
	b = append(b, '{')
	for i, h := range hs {
		if hasHeader(hs[:i], h.Name) {
			continue
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, h.Name)
		b = append(b, ':')
		if !hasHeader(hs[i+1:], h.Name) {
			b = appendString(b, h.Value)
			continue
		}
		b = append(b, '[')
		b = appendString(b, h.Value)
		for _, more := range hs[i+1:] {
			if more.Name == h.Name {
				b = append(b, ',')
				b = appendString(b, more.Value)
			}
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

func repeated(hs []engine.Header) bool {
	for i, h := range hs {
		if hasHeader(hs[:i], h.Name) {
			return true
		}
	}
	return false
}

// appendPairs appends an array of names and values.
func appendPairs(b []byte, hs []engine.Header) []byte {
	b = append(b, '[')
	for i, h := range hs {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, '['), h.Name)
		b = append(appendString(append(b, ','), h.Value), ']')
	}
	return append(b, ']')
}

func hasHeader(hs []engine.Header, name string) bool {
	for _, h := range hs {
		if h.Name == name {
			return true
		}
	}
	return false
}

// isJSON reports whether a content type is JSON: application/json or any +json,
// with or without parameters.
func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	t, _, _ := strings.Cut(contentType, ";")
	t = strings.ToLower(strings.TrimSpace(t))
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

// appendPushed appends the fields of a push that succeeded, or of the live
// message in the way of one that failed.
func appendPushed(b []byte, p *tarry.Pushed) []byte {
	if p.Outcome != 0 {
		b = append(b, `"outcome":"`...)
		b = append(b, p.Outcome.String()...)
		b = append(b, `",`...)
	}
	b = append(b, `"id":`...)
	b = appendID(b, p.ID)
	b = append(b, `,"queue":`...)
	b = appendString(b, p.Queue)
	b = append(b, `,"key":`...)
	b = appendString(b, p.Key)
	b = append(b, `,"due":`...)
	b = appendTime(b, p.Due)
	b = append(b, `,"state":"`...)
	b = append(b, p.State.String()...)
	return append(b, '"')
}
