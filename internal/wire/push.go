package wire

import (
	"net/http"
	"strconv"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// The first fields of a message to push.
const (
	FieldQueue = iota
	FieldKey
	FieldDelay
	FieldDue
	FieldOnConflict
	FieldToken
	FieldBody
	FieldBodyBase64
)

// PushedMessage is a message to push, with the queue or without.
var PushedMessage = requestObject("", "",
	optional("queue", asQueue, func(m *engine.Message) *string { return &m.Queue }, "where to"),
	optional("key", asText.described(isKey).checked(func(r *Reader, _, key string) {
		if key == "" {
			r.Wrong("key: is empty; leave it out for a message without a key")
		}
	}), func(m *engine.Message) *string { return &m.Key }, "your name for it, unique among the queue's live messages; not . or .."),
	optional("delay", asDuration, func(m *engine.Message) *time.Duration { return &m.Due.In }, "not before so long from now on; without delay and due: now").
		unless(func(m *engine.Message) bool { return !m.Due.At.IsZero() || m.Due.In <= 0 }),
	optional("due", asExact, func(m *engine.Message) *time.Time { return &m.Due.At }, "not before; instead of delay"),
	optional("on_conflict", asConflict, func(m *engine.Message) *engine.Conflict { return &m.OnConflict }, "what to do when the key is held or remembered; default: reject").
		unless(func(m *engine.Message) bool { return m.OnConflict == engine.Reject || m.Key == "" }), // without a key there is no conflict
	optional("lease", asText, func(m *engine.Message) *string { return &m.Token }, "of replace: the newest lease of the message, which is then replaced although it is leased").
		unless(func(m *engine.Message) bool { return m.Token == "" }),
	optional("body", asJSON, func(m *engine.Message) *[]byte { return &m.Body }, "any JSON value, kept byte for byte; the content type is then JSON").
		unless(func(*engine.Message) bool { return true }),
	optional("body_base64", asBase64, func(m *engine.Message) *[]byte { return &m.Body }, "any bytes instead of body"),
	optional("content_type", asContentType, func(m *engine.Message) *string { return &m.ContentType }, "of the body; application/json when there is a body"),
	optional("headers", asHeaders, func(m *engine.Message) *[]engine.Header { return &m.Headers }, "an object of strings; a repeated name has an array of strings, and an array of pairs keeps any order"),
	optional("priority", asPriority, func(m *engine.Message) **uint32 { return &m.Priority }, "lower first among ready ones; default: the queue's, else 1024"),
	optional("max_attempts", asMaxAttempts, func(m *engine.Message) *uint32 { return &m.MaxAttempts }, "leases after which it is dead; default: the queue's, else 20"),
	optional("ttr", asTTR, func(m *engine.Message) *time.Duration { return &m.TTR }, ttrDoc+"; default: the queue's, else 60s"),
	optional("backoff", asBackoff, func(m *engine.Message) *[]time.Duration { return &m.Backoff }, "delays after the first, second, … failed attempt; the last repeats"),
	optional("expire_after", asSpanOrNever, func(m *engine.Message) *time.Duration { return &m.ExpireAfter }, "dropped when not leased this long after due; 0s: never; default: the queue's, else never"),
	optional("remember", asRemember, func(m *engine.Message) *time.Duration { return &m.Remember }, "how long its key stays known when it has gone by ack, cancel or expiry; 0s: not at all; default: the queue's, else not at all"),
	optional("isolate", asIsolate, func(m *engine.Message) **bool { return &m.Isolate }, "from its second attempt on it comes back apart from messages that lapsed with it, and is leased alone; default: the queue's, else true"),
).checked(checkMessage)

// checkMessage checks a message to push, and sets the content type of a JSON body.
func checkMessage(r *Reader, got Fields, m *engine.Message) {
	switch {
	case got.Has(FieldBody) && got.Has(FieldBodyBase64):
		r.Wrong("body: give body or body_base64, not both")
	case got.Has(FieldDelay) && got.Has(FieldDue):
		r.Wrong("delay: give delay or due, not both")
	case !got.Has(FieldBody):
	case m.ContentType == "":
		m.ContentType = "application/json"
	case !IsJSON(m.ContentType):
		r.wrongHint("send what is not JSON as body_base64", "body: is JSON, which does not fit the content_type %s", engine.Clip(m.ContentType))
	}
}

// NewMessage is a message to push into the queue of the path.
var (
	NewMessage   = PushedMessage.only("NewMessage", "A message to push. All fields may be missing.", nil, PushedMessage.without("queue"))
	batchMessage = PushedMessage.only("BatchMessage", "A message of a batch.", []string{"queue"}, PushedMessage.without("queue")).checked(checkMessage)
)

// AppendBatch appends a request with as many of the messages as fit into size bytes, at
// most most and at least one. It returns how many.
func AppendBatch(b []byte, msgs []engine.Message, atomic bool, most, size int) (body []byte, n int) {
	start := len(b)
	b = append(b, `{"messages":[`...)
	end := `]}`
	if atomic {
		end = `],"atomic":true}`
	}
	for n < min(len(msgs), most) {
		before := len(b)
		if n > 0 {
			b = append(b, ',')
		}
		b = batchMessage.Append(b, &msgs[n])
		if n > 0 && len(b)-start+len(end) > size {
			b = b[:before]
			break
		}
		n++
	}
	return append(b, end...), n
}

// Batch is a request to push many messages.
type Batch struct {
	Items[engine.Message]
	Atomic bool
}

// NewBatch is a request to push many messages.
var NewBatch = requestObject("Batch", "Messages to push.",
	required("messages", items(batchMessage, "message"), func(b *Batch) *Items[engine.Message] { return &b.Items }, ""),
	optional("atomic", asFlag, func(b *Batch) *bool { return &b.Atomic }, "all are kept, or none is and the first error answers; else each alone. Limits of GET /v1/info bound it: max_atomic, max_atomic_bytes"))

// items reads an array of elements that fail separately. It calls each for each element; each
// reads the element, and takes its error from bad.
func (r *Reader) items(name string, each func(n int)) {
	if !r.open(name, '[') {
		return
	}
	outside := r.bad
	for n := 0; r.more(); n++ {
		if n == engine.MaxBatch {
			r.err = &Error{Status: http.StatusRequestEntityTooLarge, Code: "too_large",
				Message: "more than " + strconv.Itoa(engine.MaxBatch) + " " + name + " in one request", Hint: "send them in several requests"}
			return
		}
		r.bad = nil
		each(n)
	}
	r.bad = outside
}

// Pushed is the answer to a push. When Err is set and ID is not 0, the fields except
// Outcome describe the existing message that the push conflicts with.
type Pushed struct {
	engine.PushResult
	Queue, Key string
}

// AppendPushed appends the answer to a push that succeeded.
func AppendPushed(b []byte, p *Pushed) []byte { return pushedShape.Append(b, p) }

// PushResult is the result of a push: all fields that it may have.
var PushResult = answerObject("", "",
	optional("error", asFailure, func(p *Pushed) *error { return &p.Err }, "what went wrong; beside it the message in the way, if there is one"),
	required("outcome", asOutcome, func(p *Pushed) *engine.Outcome { return &p.Outcome }, "what the push did"),
	required("id", asID, func(p *Pushed) *engine.ID { return &p.ID }, "ours").unless(noMessage),
	required("queue", asQueue, func(p *Pushed) *string { return &p.Queue }, "").unless(noMessage),
	required("key", asText, func(p *Pushed) *string { return &p.Key }, "empty: none").unless(noMessage),
	required("due", asInstant, func(p *Pushed) *time.Time { return &p.Due }, "").unless(noMessage),
	required("state", asState, func(p *Pushed) *engine.State { return &p.State }, "finished: nothing was pushed, as the key is remembered").unless(noMessage),
	optional("ending", asEnding, func(p *Pushed) *engine.Ending { return &p.Ending }, "how it went, if it is finished"),
	optional("ended", asInstant, func(p *Pushed) *time.Time { return &p.Ended }, "when"),
)

var (
	pushedShape = PushResult.only("Pushed", "A push that did not fail.", []string{"outcome", "id", "queue", "key", "due", "state"}, []string{"ending", "ended"})
	pushFailed  = PushResult.only("PushFailed", "A push of a batch that failed.", []string{"error"}, PushResult.without("error", "outcome"))
)

// noMessage is for a push that failed without a message in the way.
func noMessage(p *Pushed) bool { return p.ID == 0 }

// PushedAnswer and PushResults describe the answers to the push of one message, and of many.
var (
	PushedAnswer = pushedShape.Shape
	PushResults  = results("PushResults", "What became of each message.", Schema{{Name: "oneOf", Value: []Schema{pushedShape.Ref(), pushFailed.Ref()}}})
)
