package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tarryhq/tarry/engine"
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

// AppendInfo appends a message, with its lease if it has a token.
func AppendInfo(b []byte, m *engine.Lease, how Bodies) []byte {
	if m.State == engine.Finished {
		return finished.Append(b, m)
	}
	return written[how].Append(b, m)
}

// written are the objects that write messages that are not finished.
var written = [...]*Object[engine.Lease]{AsJSON: showing(AsJSON), Exactly: showing(Exactly), NoBodies: showing(NoBodies)}

// showing returns Info with one field for the body, which writes either form of it.
func showing(how Bodies) *Object[engine.Lease] {
	o := Info.only("", "", nil, Info.without("body_base64"))
	for i := range o.members {
		switch m := &o.members[i]; m.name {
		case "headers":
			m.append = func(b []byte, l *engine.Lease) []byte { return appendHeaders(b, l.Headers, how == Exactly) }
		case "body":
			m.label, m.omit = ",", func(*engine.Lease) bool { return how == NoBodies }
			m.append = func(b []byte, l *engine.Lease) []byte { return appendBody(b, &l.Content, how) }
		}
	}
	return o
}

// appendBody appends the name and value of a body.
func appendBody(b []byte, c *engine.Content, how Bodies) []byte {
	if how == AsJSON && IsJSON(c.ContentType) && !deep(c.Body) && validJSON(c.Body) {
		return append(append(b, `"body":`...), c.Body...)
	}
	return asBase64.append(append(b, `"body_base64":`...), &c.Body)
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
	required("created", asInstant, func(m *engine.Lease) *time.Time { return &m.Created }, "").unless(unlisted),
	required("attempt", count32, func(m *engine.Lease) *uint32 { return &m.Attempt }, "how often it was leased; snoozed and released ones not counted").unless(unlisted),
	required("max_attempts", count32, func(m *engine.Lease) *uint32 { return &m.MaxAttempts }, "leases after which it is dead"),
	required("priority", count32, func(m *engine.Lease) *uint32 { return &m.Priority }, "lower first among ready ones"),
	required("ttr", asDuration, func(m *engine.Lease) *time.Duration { return &m.TTR }, "how long a lease lasts"),
	optional("backoff", list(asDuration, 0), func(m *engine.Lease) *[]time.Duration { return &m.Backoff }, "delays after the first, second, … failed attempt; the last repeats"),
	optional("expire_after", asDuration, func(m *engine.Lease) *time.Duration { return &m.ExpireAfter }, "dropped when not leased this long after due"),
	optional("remember", asDuration, func(m *engine.Lease) *time.Duration { return &m.Remember }, "how long its key stays known when it has gone"),
	optional("isolate", asFlag, func(m *engine.Lease) *bool { return &m.Isolate }, "false: it is not isolated when it has lapsed").
		unless(func(m *engine.Lease) bool { return m.Isolate }),
	optional("expires", asInstant, func(m *engine.Lease) *time.Time { return &m.Expires }, "when it is dropped unless leased"),
	required("headers", asHeaders, func(m *engine.Lease) *[]engine.Header { return &m.Headers }, "an object, where a repeated name has an array; with Tarry-Exact an array of pairs when a name is repeated"),
	required("content_type", asContentType, func(m *engine.Lease) *string { return &m.ContentType }, "of the body; empty: not said"),
	optional("body", asJSON, func(m *engine.Lease) *[]byte { return &m.Body }, "when its content type is JSON and it is JSON, nested at most 50 deep"),
	optional("body_base64", asBase64, func(m *engine.Lease) *[]byte { return &m.Body }, "else, and with Tarry-Exact"),
	required("last_error", asText, func(m *engine.Lease) *string { return &m.LastError }, "why the last attempt failed").unless(unlisted),
	optional("failures", list(failureFields.kind("failure"), 0), func(m *engine.Lease) *[]engine.Failure { return &m.Failures },
		fmt.Sprintf("the last %d failed attempts, oldest first; not of a message leased to you", engine.MaxFailures)),
	optional("worker", asText, func(m *engine.Lease) *string { return &m.Worker }, "who has it, or acked or cancelled it, if that is known"),
	optional("started", asInstant, func(m *engine.Lease) *time.Time { return &m.Started }, "when its lease began, if it is leased or was acked"),
	optional("died", asInstant, func(m *engine.Lease) *time.Time { return &m.Died }, "when it became dead"),
	optional("lease", asText, func(m *engine.Lease) *string { return &m.Token }, "what settles it; it is yours alone"),
	optional("lease_expires", asInstant, func(m *engine.Lease) *time.Time { return &m.Deadline }, "when the lease ends, if it is leased"),
	optional("ending", asEnding, func(m *engine.Lease) *engine.Ending { return &m.Ending }, "how it went"),
	optional("ended", asInstant, func(m *engine.Lease) *time.Time { return &m.Ended }, "when it went"),
	optional("forgotten", asInstant, func(m *engine.Lease) *time.Time { return &m.Forgotten }, "from when on its key is free; missing: it is free, or not known in a list"),
).checked(func(_ *Reader, got Fields, m *engine.Lease) {
	const isolate = 13
	if !got.Has(isolate) {
		m.Isolate = m.State != engine.Finished // the policy of a finished message is not known any more
	}
})

// unlisted reports whether of a message only the key is left.
func unlisted(m *engine.Lease) bool { return m.State == engine.Finished && m.Created.IsZero() }

var failureFields = answerObject("FailedAttempt", "A failed attempt of a message.",
	required("at", asInstant, func(f *engine.Failure) *time.Time { return &f.At }, "when; of a lapse: the end of the lease"),
	required("attempt", count32, func(f *engine.Failure) *uint32 { return &f.Attempt }, ""),
	required("worker", asText, func(f *engine.Failure) *string { return &f.Worker }, "who had the lease; empty: not known"),
	required("error", asText, func(f *engine.Failure) *string { return &f.Reason }, "why"))

// The messages in answers, made from Info.
var (
	keptFields = Info.without("backoff", "expire_after", "remember", "isolate", "expires", "body", "body_base64", "failures", "worker", "started", "died", "lease", "lease_expires", "ending", "ended", "forgotten")
	mayHave    = []string{"backoff", "expire_after", "remember", "isolate", "expires", "body", "body_base64", "worker", "started", "died"}

	// Kept is a live or dead message.
	Kept = Info.only("Message", "A live or dead message. Without a body where none was asked for.", keptFields, append(mayHave, "failures", "lease_expires")).
		narrowed("state", asStanding.is)
	// LeasedMessage is a message leased to the caller.
	LeasedMessage = Info.only("LeasedMessage", "A message that is leased to you.", append(keptFields, "lease", "lease_expires"), mayHave).
			narrowed("state", wordsSchema(engine.Leased.String()))
	finished = Info.only("FinishedMessage", "What is left of a message that has gone. Without created only its key is remembered.",
		[]string{"id", "queue", "key", "state", "due", "ending", "ended"}, []string{"created", "attempt", "last_error", "failures", "worker", "started", "forgotten"}).narrowed("state", wordsSchema(engine.Finished.String()))
)

// AppendPage appends a page of messages.
func AppendPage(b []byte, p *engine.Page, how Bodies) []byte {
	var l engine.Lease
	b = appendAll(append(b, `{"messages":`...), p.Messages, func(b []byte, m *engine.Info) []byte {
		l.Info = *m
		return AppendInfo(b, &l, how)
	})
	return append(AppendString(append(b, `,"next":`...), p.Next), '}')
}

// AppendFound appends a page of messages that a search found, and how many it read.
func AppendFound(b []byte, p *engine.Page, read int, how Bodies) []byte {
	b = AppendPage(b, p, how)
	return append(strconv.AppendInt(append(b[:len(b)-1], `,"read":`...), int64(read), 10), '}')
}

// MessagePage is a page of messages.
var MessagePage = answerObject("MessagePage", "A page of a list.",
	required("messages", kind[[]engine.Info]{arraySchema(FoundMessage, 0), func(r *Reader, name string, all *[]engine.Info) {
		var m engine.Lease
		r.all(name, 0, func(int) {
			m = engine.Lease{}
			Info.read(r, "message", &m)
			*all = append(*all, m.Info)
		})
	}, nil, nil}, func(p *engine.Page) *[]engine.Info { return &p.Messages }, ""),
	required("next", asText, func(p *engine.Page) *string { return &p.Next }, "give it as after for the next page; empty: this is the last"),
	optional("read", count[int](), func(*engine.Page) *int { return new(int) }, "with key_prefix or header: how many messages were read for this page"))

// FoundPage is the shape of what a search in all queues found.
var FoundPage = newShape("FoundMessages", "What was found in all queues.", false, []field{
	{"messages", arraySchema(FoundMessage, 0), "", true},
	{"next", isText, "give it as after to search on; empty: all was searched", true},
	{"read", isCount, "how many messages were read; with key: how many queues", true},
})
