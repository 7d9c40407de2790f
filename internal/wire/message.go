package wire

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schema"
)

// Bodies says how the bodies of answered messages are shown.
type Bodies uint8

// The ways to show bodies.
const (
	AsJSON   Bodies = iota // as JSON where it is JSON, else in base64
	Exactly                // always in base64, byte for byte; repeated headers in their order
	NoBodies               // not at all
)

// ExactHeader, with the value "true", asks for messages Exactly.
const ExactHeader = "Tarry-Exact"

// AppendInfo appends a message, with its lease if token is not empty. Of a finished message
// it appends what is remembered.
func AppendInfo(b []byte, m *engine.Info, token string, how Bodies) []byte {
	b = appendID(append(b, `{"id":`...), m.ID)
	b = appendText(b, `,"queue":`, m.Queue)
	b = appendText(b, `,"key":`, m.Key)
	b = appendWord(b, `,"state":`, m.State.String())
	b = appendTime(b, `,"due":`, m.Due)
	if m.State == engine.Finished {
		b = appendEnding(b, m.Ending, m.Ended)
		return append(appendTime(b, `,"forgotten":`, m.Forgotten), '}')
	}
	b = appendTime(b, `,"created":`, m.Created)
	b = appendInt(b, `,"attempt":`, int64(m.Attempt))
	b = appendInt(b, `,"max_attempts":`, int64(m.MaxAttempts))
	b = appendInt(b, `,"priority":`, int64(m.Priority))
	b = appendDuration(b, `,"ttr":`, m.TTR)
	if len(m.Backoff) > 0 {
		b = appendBackoff(b, m.Backoff)
	}
	if m.ExpireAfter > 0 {
		b = appendDuration(b, `,"expire_after":`, m.ExpireAfter)
	}
	if m.Remember > 0 {
		b = appendDuration(b, `,"remember":`, m.Remember)
	}
	if !m.Isolate {
		b = append(b, `,"isolate":false`...)
	}
	if !m.Expires.IsZero() {
		b = appendTime(b, `,"expires":`, m.Expires)
	}
	b = appendHeaders(append(b, `,"headers":`...), m.Headers, how == Exactly)
	b = appendText(b, `,"content_type":`, m.ContentType)
	b = appendBody(b, m, how)
	b = appendText(b, `,"last_error":`, m.LastError)
	if !m.Died.IsZero() {
		b = appendTime(b, `,"died":`, m.Died)
	}
	if token != "" {
		b = appendText(b, `,"lease":`, token)
	}
	if !m.Deadline.IsZero() {
		b = appendTime(b, `,"lease_expires":`, m.Deadline)
	}
	return append(b, '}')
}

// appendEnding appends how and when a message finished.
func appendEnding(b []byte, how engine.Ending, ended time.Time) []byte {
	return appendTime(appendWord(b, `,"ending":`, how.String()), `,"ended":`, ended)
}

func appendBody(b []byte, m *engine.Info, how Bodies) []byte {
	switch {
	case how == NoBodies:
		return b
	case how == AsJSON && IsJSON(m.ContentType) && !deep(m.Body) && validJSON(m.Body):
		b = append(b, `,"body":`...)
		return append(b, m.Body...)
	}
	b = append(b, `,"body_base64":"`...)
	b = base64.StdEncoding.AppendEncode(b, m.Body)
	return append(b, '"')
}

func validJSON(body []byte) bool {
	return len(body) > 0 && jsontext.Value(body).IsValid(options)
}

// IsJSON reports whether a content type is JSON: application/json or any +json,
// with or without parameters.
func IsJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	t, _, _ := strings.Cut(contentType, ";")
	t = strings.ToLower(strings.TrimSpace(t))
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

// Info is a message in an answer, with its lease if it was leased to the caller: all fields
// that it may have.
var Info = answerObject("", "",
	required("id", asID, func(m *engine.Lease) *engine.ID { return &m.ID }, "ours"),
	required("queue", asQueue, func(m *engine.Lease) *string { return &m.Queue }, ""),
	required("key", asText, func(m *engine.Lease) *string { return &m.Key }, "yours; empty: none"),
	required("state", asState, func(m *engine.Lease) *engine.State { return &m.State }, ""),
	required("due", asInstant, func(m *engine.Lease) *time.Time { return &m.Due }, "not handled before"),
	required("created", asInstant, func(m *engine.Lease) *time.Time { return &m.Created }, ""),
	required("attempt", count32, func(m *engine.Lease) *uint32 { return &m.Attempt }, "how often it was leased; snoozed and released ones not counted"),
	required("max_attempts", count32, func(m *engine.Lease) *uint32 { return &m.MaxAttempts }, "leases after which it is dead"),
	required("priority", count32, func(m *engine.Lease) *uint32 { return &m.Priority }, "lower first among ready ones"),
	required("ttr", asDuration, func(m *engine.Lease) *time.Duration { return &m.TTR }, "how long a lease lasts"),
	optional("backoff", list(asDuration, 0), func(m *engine.Lease) *[]time.Duration { return &m.Backoff }, "delays after the first, second, … failed attempt; the last repeats"),
	optional("expire_after", asDuration, func(m *engine.Lease) *time.Duration { return &m.ExpireAfter }, "dropped when not leased this long after due"),
	optional("remember", asDuration, func(m *engine.Lease) *time.Duration { return &m.Remember }, "how long its key stays known when it has gone"),
	optional("isolate", asFlag, func(m *engine.Lease) *bool { return &m.Isolate }, "false: it is not isolated when it has lapsed"),
	optional("expires", asInstant, func(m *engine.Lease) *time.Time { return &m.Expires }, "when it is dropped unless leased"),
	required("headers", asHeaders, func(m *engine.Lease) *[]engine.Header { return &m.Headers }, "an object, where a repeated name has an array; with Tarry-Exact an array of pairs when a name is repeated"),
	required("content_type", asContentType, func(m *engine.Lease) *string { return &m.ContentType }, "of the body; empty: not said"),
	optional("body", asJSON, func(m *engine.Lease) *[]byte { return &m.Body }, "when its content type is JSON and it is JSON, nested at most 50 deep"),
	optional("body_base64", asBase64, func(m *engine.Lease) *[]byte { return &m.Body }, "else, and with Tarry-Exact"),
	required("last_error", asText, func(m *engine.Lease) *string { return &m.LastError }, "why the last attempt failed"),
	optional("died", asInstant, func(m *engine.Lease) *time.Time { return &m.Died }, "when it became dead"),
	optional("lease", asText, func(m *engine.Lease) *string { return &m.Token }, "what settles it; it is yours alone"),
	optional("lease_expires", asInstant, func(m *engine.Lease) *time.Time { return &m.Deadline }, "when the lease ends, if it is leased"),
	optional("ending", asEnding, func(m *engine.Lease) *engine.Ending { return &m.Ending }, "how it went"),
	optional("ended", asInstant, func(m *engine.Lease) *time.Time { return &m.Ended }, "when it went"),
	optional("forgotten", asInstant, func(m *engine.Lease) *time.Time { return &m.Forgotten }, "from when on its key is free"),
).checked(func(_ *Reader, got Fields, m *engine.Lease) {
	const isolate = 13
	if !got.Has(isolate) {
		m.Isolate = m.State != engine.Finished // the policy of a finished message is not known any more
	}
})

// The messages in answers, made from Info.
var (
	keptFields = Info.without("backoff", "expire_after", "remember", "isolate", "expires", "body", "body_base64", "died", "lease", "lease_expires", "ending", "ended", "forgotten")
	mayHave    = []string{"backoff", "expire_after", "remember", "isolate", "expires", "body", "body_base64", "died"}

	// Kept is a live or dead message.
	Kept = Info.only("Message", "A live or dead message. Without a body where none was asked for.", keptFields, append(mayHave, "lease_expires")).
		narrowed("state", isStoredState)
	// LeasedMessage is a message leased to the caller.
	LeasedMessage = Info.only("LeasedMessage", "A message that is leased to you.", append(keptFields, "lease", "lease_expires"), mayHave).
			narrowed("state", schema.Words(engine.Leased.String()))
	finished = Info.only("FinishedMessage", "What is left of a message that has gone and whose key is remembered.",
		[]string{"id", "queue", "key", "state", "due", "ending", "ended", "forgotten"}, nil).narrowed("state", schema.Words(engine.Finished.String()))
)

// AppendPage appends a page of messages.
func AppendPage(b []byte, p *engine.Page, how Bodies) []byte {
	b = appendAll(append(b, `{"messages":`...), p.Messages, func(b []byte, m *engine.Info) []byte { return AppendInfo(b, m, "", how) })
	return append(appendText(b, `,"next":`, p.Next), '}')
}

// MessagePage is a page of messages.
var MessagePage = answerObject("MessagePage", "A page of a list.",
	required("messages", kind[[]engine.Info]{schema.Array(Kept.Ref(), 0), func(r *Reader, name string, all *[]engine.Info) {
		var m engine.Lease
		r.all(name, 0, func(int) {
			m = engine.Lease{}
			Info.read(r, "message", &m)
			*all = append(*all, m.Info)
		})
	}, nil, nil}, func(p *engine.Page) *[]engine.Info { return &p.Messages }, ""),
	required("next", asText, func(p *engine.Page) *string { return &p.Next }, "give it as after for the next page; empty: this is the last"))
