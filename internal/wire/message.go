package wire

import (
	"bytes"
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

// infoFields are all fields that a message may have.
var infoFields = answered("", "",
	must("id", isID, "ours"),
	must("queue", isQueue, ""),
	must("key", isText, "yours; empty: none"),
	must("state", isState, ""),
	must("due", isInstant, "not handled before"),
	must("created", isInstant, ""),
	must("attempt", isCount, "how often it was leased; snoozed and released ones not counted"),
	must("max_attempts", isCount, "leases after which it is dead"),
	must("priority", isCount, "lower first among ready ones"),
	must("ttr", isDuration, "how long a lease lasts"),
	may("backoff", schema.Array(isDuration, 0), "delays after the first, second, … failed attempt; the last repeats"),
	may("expire_after", isDuration, "dropped when not leased this long after due"),
	may("remember", isDuration, "how long its key stays known when it has gone"),
	may("isolate", isFlag, "false: it is not isolated when it has lapsed"),
	may("expires", isInstant, "when it is dropped unless leased"),
	must("headers", isHeaders, "an object, where a repeated name has an array; with Tarry-Exact an array of pairs when a name is repeated"),
	must("content_type", isText, "of the body; empty: not said"),
	may("body", schema.Object{}, "when its content type is JSON and it is JSON, nested at most 50 deep"),
	may("body_base64", isBase64, "else, and with Tarry-Exact"),
	must("last_error", isText, "why the last attempt failed"),
	may("died", isInstant, "when it became dead"),
	may("lease", isText, "what settles it; it is yours alone"),
	may("lease_expires", isInstant, "when the lease ends, if it is leased"),
	may("ending", isEnding, "how it went"),
	may("ended", isInstant, "when it went"),
	may("forgotten", isInstant, "from when on its key is free"),
)

// The shapes of messages in answers, made from infoFields.
var (
	keptFields = infoFields.without("backoff", "expire_after", "remember", "isolate", "expires", "body", "body_base64", "died", "lease", "lease_expires", "ending", "ended", "forgotten")
	mayHave    = []string{"backoff", "expire_after", "remember", "isolate", "expires", "body", "body_base64", "died"}

	// Kept is a live or dead message.
	Kept = infoFields.only("Message", "A live or dead message. Without a body where none was asked for.", keptFields, append(mayHave, "lease_expires")).
		narrowed("state", isStanding)
	// LeasedMessage is a message leased to the caller.
	LeasedMessage = infoFields.only("LeasedMessage", "A message that is leased to you.", append(keptFields, "lease", "lease_expires"), mayHave).
			narrowed("state", schema.Words(engine.Leased.String()))
	finished = infoFields.only("FinishedMessage", "What is left of a message that has gone and whose key is remembered.",
		[]string{"id", "queue", "key", "state", "due", "ending", "ended", "forgotten"}, nil).narrowed("state", schema.Words(engine.Finished.String()))
)

// Info reads a message, with its lease if it was leased to the caller.
func (r *Reader) Info() (l engine.Lease) {
	if !r.open("message", '{') {
		return l
	}
	l.Isolate = true
	var seen seen
	for f := r.next(infoFields.names, &seen); f >= 0; f = r.next(infoFields.names, &seen) {
		r.infoField(f, &l)
	}
	if l.State == engine.Finished {
		l.Isolate = false // its policy is not known any more
	}
	return l
}

func (r *Reader) infoField(f int, l *engine.Lease) {
	switch name := infoFields.names[f]; name {
	case "id":
		l.ID = r.id(name)
	case "queue":
		l.Queue = r.queueName()
	case "key":
		l.Key = r.text(name)
	case "state":
		l.State = r.state(name)
	case "due":
		l.Due = r.time(name)
	case "created":
		l.Created = r.time(name)
	case "attempt":
		l.Attempt = r.uint32(name)
	case "max_attempts":
		l.MaxAttempts = r.uint32(name)
	case "priority":
		l.Priority = r.uint32(name)
	case "ttr":
		l.TTR = r.duration(name)
	case "backoff":
		l.Backoff = r.backoff(name)
	case "expire_after":
		l.ExpireAfter = r.duration(name)
	case "remember":
		l.Remember = r.duration(name)
	case "isolate":
		l.Isolate = r.flag(name)
	case "expires":
		l.Expires = r.time(name)
	case "headers":
		l.Headers = r.headers(name)
	case "content_type":
		l.ContentType = r.contentType(name)
	case "body":
		if v, ok := r.value(); ok {
			l.Body = bytes.Clone(v)
		}
	case "body_base64":
		l.Body = r.base64(name)
	case "last_error":
		l.LastError = r.text(name)
	case "died":
		l.Died = r.time(name)
	case "lease":
		l.Token = r.text(name)
	case "lease_expires":
		l.Deadline = r.time(name)
	case "ending":
		l.Ending = r.ending(name)
	case "ended":
		l.Ended = r.time(name)
	case "forgotten":
		l.Forgotten = r.time(name)
	}
}

// AppendPage appends a page of messages.
func AppendPage(b []byte, p *engine.Page, how Bodies) []byte {
	b = appendAll(append(b, `{"messages":`...), p.Messages, func(b []byte, m *engine.Info) []byte { return AppendInfo(b, m, "", how) })
	return append(appendText(b, `,"next":`, p.Next), '}')
}

// MessagePage is the shape of a page of messages.
var MessagePage = answered("MessagePage", "A page of a list.",
	must("messages", schema.Array(Kept.Ref(), 0), ""),
	must("next", isText, "give it as after for the next page; empty: this is the last"))

// Page reads a page of messages.
func (r *Reader) Page() (p engine.Page) {
	r.fields("answer", MessagePage, func(f int) {
		if f == 0 {
			r.all("messages", 0, func(int) { p.Messages = append(p.Messages, r.Info().Info) })
		} else {
			p.Next = r.text("next")
		}
	})
	return p
}
