package wire

import (
	"encoding/base64"
	"math"
	"net/http"
	"strconv"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/schema"
)

// Fields is a set of fields of a message to push: those that a request has.
type Fields uint32

// Has reports whether the set has a field, such as FieldQueue.
func (f Fields) Has(field int) bool { return f&(1<<field) != 0 }

// The fields of a message to push, in the order of messageFields.
const (
	FieldQueue = iota
	FieldKey
	FieldDelay
	FieldDue
	FieldOnConflict
	FieldBody
	FieldBodyBase64
	FieldContentType
	FieldHeaders
	FieldPriority
	FieldMaxAttempts
	FieldTTR
	FieldBackoff
	FieldExpireAfter
	FieldRemember
	FieldIsolate
)

var messageFields = asked("", "",
	must("queue", isQueue, "where to"),
	may("key", isKey, "your name for it, unique among the queue's live messages; not . or .."),
	may("delay", isDuration, "not before so long from now on; without delay and due: now"),
	may("due", isTime, "not before; instead of delay"),
	may("on_conflict", isConflict, "what to do when the key is held or remembered; default: reject"),
	may("body", schema.Object{}, "any JSON value, kept byte for byte; the content type is then JSON"),
	may("body_base64", isBase64, "any bytes instead of body"),
	may("content_type", isText, "of the body; application/json when there is a body"),
	may("headers", isHeaders, "an object of strings; a repeated name has an array of strings, and an array of pairs keeps any order"),
	may("priority", schema.Whole(0, math.MaxUint32), "lower first among ready ones; default: the queue's, else 1024"),
	may("max_attempts", schema.Whole(1, engine.MaxMaxAttempts), "leases after which it is dead; default: the queue's, else 20"),
	may("ttr", isDuration, ttrDoc+"; default: the queue's, else 60s"),
	may("backoff", isBackoff, "delays after the first, second, … failed attempt; the last repeats"),
	may("expire_after", isDuration, "dropped when not leased this long after due; 0s: never; default: the queue's, else never"),
	may("remember", isDuration, "how long its key stays known when it has gone by ack, cancel or expiry; 0s: not at all; default: the queue's, else not at all"),
	may("isolate", isFlag, "from its second attempt on it comes back apart from messages that lapsed with it, and is leased alone; default: the queue's, else true"),
)

// NewMessage is the shape of a message to push into the queue of the path.
var (
	NewMessage   = messageFields.only("NewMessage", "A message to push. All fields may be missing.", nil, messageFields.without("queue"))
	batchMessage = messageFields.only("BatchMessage", "A message of a batch.", []string{"queue"}, messageFields.without("queue"))
)

// AppendMessage appends a message to push. It leaves out fields that are not set, and a
// conflict policy without a key.
func AppendMessage(b []byte, m *engine.Message) []byte {
	b = appendText(b, `{"queue":`, m.Queue)
	if m.Key != "" {
		b = appendText(b, `,"key":`, m.Key)
	}
	b = appendWhen(b, m.Due)
	if m.OnConflict != engine.Reject && m.Key != "" { // without a key there is no conflict
		b = appendWord(b, `,"on_conflict":`, m.OnConflict.String())
	}
	if len(m.Body) > 0 {
		b = append(b, `,"body_base64":"`...)
		b = base64.StdEncoding.AppendEncode(b, m.Body)
		b = append(b, '"')
	}
	if m.ContentType != "" {
		b = appendText(b, `,"content_type":`, m.ContentType)
	}
	if len(m.Headers) > 0 {
		b = appendHeaders(append(b, `,"headers":`...), m.Headers, true)
	}
	return append(appendTerms(b, &m.Terms), '}')
}

// Message reads a request with one message to push into m, which must be empty. The body is
// valid until Reset.
func (r *Reader) Message(m *engine.Message) Fields {
	got := r.message(m)
	r.end()
	return got
}

func (r *Reader) message(m *engine.Message) Fields {
	if !r.open("message", '{') {
		return 0
	}
	var seen seen
	for f := r.next(messageFields.names, &seen); f >= 0; f = r.next(messageFields.names, &seen) {
		r.messageField(f, m)
	}
	got := Fields(seen)
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
	return got
}

func (r *Reader) messageField(f int, m *engine.Message) {
	switch name := messageFields.names[f]; f {
	case FieldQueue:
		m.Queue = r.queueName()
	case FieldBody:
		m.Body, _ = r.value()
	case FieldBodyBase64:
		m.Body = r.base64(name)
	case FieldContentType:
		m.ContentType = r.contentType(name)
	case FieldDelay:
		m.Due.In = r.duration(name)
	case FieldDue:
		m.Due.At = r.time(name)
	case FieldKey:
		if m.Key = r.text(name); m.Key == "" {
			r.Wrong("key: is empty; leave it out for a message without a key")
		}
	case FieldHeaders:
		m.Headers = r.headers(name)
	case FieldPriority, FieldMaxAttempts, FieldTTR, FieldBackoff, FieldExpireAfter, FieldRemember, FieldIsolate:
		r.term(name, &m.Terms)
	case FieldOnConflict:
		s, ok := r.bytes(name)
		c, err := engine.ParseConflict(string(s))
		if ok && err != nil {
			r.Wrong("%s: must be reject, keep, replace, keep_due or rearm, not %q", name, engine.Clip(string(s)))
		}
		m.OnConflict = c
	}
}

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
		b = AppendMessage(b, &msgs[n])
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
	Messages []engine.Message
	Bad      []*Error // the error of each message, or nil; nil: no message is wrong
	Atomic   bool
}

// NewBatch is the shape of a request to push many messages.
var NewBatch = asked("Batch", "Messages to push.",
	must("messages", schema.Array(batchMessage.Ref(), engine.MaxBatch), ""),
	may("atomic", isFlag, "all are kept, or none is and the first error answers; else each alone. Limits of GET /v1/info bound it: max_atomic, max_atomic_bytes"))

// Batch reads a request to push many messages. It appends to the messages of b.
func (r *Reader) Batch(b *Batch) {
	seen := r.fields("request", NewBatch, func(f int) {
		if f == 0 {
			r.messages(b)
		} else {
			b.Atomic = r.flag("atomic")
		}
	})
	if seen&1 == 0 {
		r.Wrong("messages: is missing")
	}
	r.end()
}

func (r *Reader) messages(b *Batch) {
	r.items("messages", func() {
		i := len(b.Messages)
		b.Messages = append(b.Messages, engine.Message{})
		got := r.message(&b.Messages[i])
		if r.bad == nil && r.err == nil && !got.Has(FieldQueue) {
			r.Wrong("queue: is missing")
		}
		if r.bad != nil && b.Bad == nil {
			b.Bad = make([]*Error, i, i+1)
		}
		if b.Bad != nil {
			b.Bad = append(b.Bad, r.bad)
		}
	})
}

// items reads an array whose elements fail separately. It calls each for each element; each
// reads the element, and takes its error from bad.
func (r *Reader) items(name string, each func()) {
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
		each()
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
func AppendPushed(b []byte, p *Pushed) []byte {
	return append(appendPushed(append(b, '{'), p), '}')
}

// appendPushed appends the fields of a push that succeeded, or of the existing message that
// a failed push conflicts with.
func appendPushed(b []byte, p *Pushed) []byte {
	if p.Outcome != 0 {
		b = append(appendWord(b, `"outcome":`, p.Outcome.String()), ',')
	}
	b = appendID(append(b, `"id":`...), p.ID)
	b = appendText(b, `,"queue":`, p.Queue)
	b = appendText(b, `,"key":`, p.Key)
	b = appendTime(b, `,"due":`, p.Due)
	b = appendWord(b, `,"state":`, p.State.String())
	if p.State == engine.Finished {
		b = appendEnding(b, p.Ending, p.Ended)
	}
	return b
}

// pushedFields are all fields that the result of a push may have.
var pushedFields = answered("", "",
	must("outcome", isOutcome, "what the push did"),
	must("id", isID, "ours"),
	must("queue", isQueue, ""),
	must("key", isText, "empty: none"),
	must("due", isInstant, ""),
	must("state", isState, "finished: nothing was pushed, as the key is remembered"),
	may("ending", isEnding, "how it went, if it is finished"),
	may("ended", isInstant, "when"),
	may("error", errorFields.Ref(), "what went wrong; beside it the message in the way, if there is one"),
)

var (
	pushedShape = pushedFields.only("Pushed", "A push that did not fail.", []string{"outcome", "id", "queue", "key", "due", "state"}, []string{"ending", "ended"})
	pushFailed  = pushedFields.only("PushFailed", "A push of a batch that failed.", []string{"error"}, pushedFields.without("error", "outcome"))
)

// PushedAnswer and PushResults are the shapes of the answers to the push of one message, and
// of many.
var (
	PushedAnswer = pushedShape
	PushResults  = results("PushResults", "What became of each message.", schema.Object{{Name: "oneOf", Value: []schema.Object{pushedShape.Ref(), pushFailed.Ref()}}})
)

// Pushed reads the answer to one push, alone or of a batch. Err is read as an *Error.
func (r *Reader) Pushed() (p Pushed) {
	r.fields("result", pushedFields, func(f int) {
		switch f {
		case 0:
			s, ok := r.bytes("outcome")
			o, err := engine.ParseOutcome(string(s))
			if ok && err != nil {
				r.Wrong("outcome: %q is none", engine.Clip(string(s)))
			}
			p.Outcome = o
		case 1:
			p.ID = r.id("id")
		case 2:
			p.Queue = r.queueName()
		case 3:
			p.Key = r.text("key")
		case 4:
			p.Due = r.time("due")
		case 5:
			p.State = r.state("state")
		case 6:
			p.Ending = r.ending("ending")
		case 7:
			p.Ended = r.time("ended")
		case 8:
			p.Err = r.failure()
		}
	})
	return p
}
