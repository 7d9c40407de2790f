package wire

import (
	"errors"
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
)

// The bounds of a lease request.
const (
	MaxWait      = time.Minute // for the first message
	MaxQueues    = engine.MaxBatch
	MaxQueuesNow = 100 // without a wait, since each queue is then asked by itself
	MaxPollName  = 64  // bytes; also of a set's id
)

// LeaseRequest asks for due messages of some queues, or of the queues of a set.
type LeaseRequest struct {
	Queues []string
	Keep   bool          // the server may keep the queues as a set, for further requests
	Set    string        // the id of a set, instead of Queues
	Room   []Room        // a lower maximum for single queues
	Max    int           // messages; 1 if the request does not say
	Wait   time.Duration // for the first message
	TTR    time.Duration // 0: each message's own
	Worker string        // its name; "": none
	Poll   string        // the name by which the wait can be ended; "": none
}

// Room is the most messages that are wanted of a queue.
type Room struct {
	Queue string
	Max   int
}

// Leasing is a lease request.
var Leasing = requestObject("LeaseRequest", "What to lease, and how long to wait for it. Give queues or set.",
	optional("max", whole[int](1, engine.MaxLease), func(l *LeaseRequest) *int { return &l.Max }, "how many messages at most; default: 1").unless(nil),
	optional("queues", list(asText, MaxQueues).described(arraySchema(isQueue, MaxQueues).With("minItems", 1)), func(l *LeaseRequest) *[]string { return &l.Queues },
		fmt.Sprintf("from which; at most %d without a wait", MaxQueuesNow)),
	optional("set", asName, func(l *LeaseRequest) *string { return &l.Set }, "the id of a set of queues that the server keeps, instead of queues; needs a wait"),
	optional("keep", asFlag, func(l *LeaseRequest) *bool { return &l.Keep }, "have the server keep the queues as a set; needs a wait"),
	optional("room", list(roomFields.kind("room"), MaxQueues), func(l *LeaseRequest) *[]Room { return &l.Room }, "queues of which fewer than max are wanted"),
	optional("wait", scalar(isDuration, func(r *Reader, name string) time.Duration { return r.within(name, 0, MaxWait) }, AppendDuration),
		func(l *LeaseRequest) *time.Duration { return &l.Wait }, "how long to wait for the first message, at most "+duration.Format(MaxWait)+"; default: not at all"),
	optional("ttr", asTTR, func(l *LeaseRequest) *time.Duration { return &l.TTR }, ttrDoc+"; default: each message's own"),
	optional("worker", asWorker, func(l *LeaseRequest) *string { return &l.Worker }, workerDoc),
	optional("poll", asName, func(l *LeaseRequest) *string { return &l.Poll }, "a name of your own, new for each request, by which the wait can be ended"),
).checked(func(r *Reader, got Fields, l *LeaseRequest) {
	const most = 0
	if !got.Has(most) {
		l.Max = 1
	}
	switch {
	case l.Set != "" && (len(l.Queues) > 0 || l.Keep):
		r.Wrong("set: it stands for queues and keep")
	case (l.Set != "" || l.Keep) && l.Wait == 0:
		r.Wrong("wait: required with set and keep")
	case len(l.Queues) == 0 && l.Set == "":
		r.Wrong("queues: name at least one")
	case len(l.Queues) > MaxQueuesNow && l.Wait == 0:
		r.wrongHint("give a wait such as 1s, or ask in several requests", "queues: more than %d entries without a wait", MaxQueuesNow)
	}
})

const (
	ttrDoc    = "how long a lease lasts, 1ms to 24h"
	workerDoc = "your name, which look-ups, lists and failures show; without control characters"
)

// asWorker is the name of a worker.
var asWorker = asText.described(textSchema(0, engine.MaxWorkerBytes).With("examples", []string{"host-1:4711"})).
	checked(func(r *Reader, field, name string) {
		if err, bad := errors.AsType[*engine.Error](engine.CheckWorker("lease", "", name)); bad {
			r.wrongHint("take a name such as host:pid", "%s: %s", field, err.Hint)
		}
	})

// asName is the name of a wait or the id of a set.
var asName = asText.described(isName).checked(func(r *Reader, field, name string) {
	if name == "" || len(name) > MaxPollName {
		r.Wrong("%s: a name has 1 to %d bytes", field, MaxPollName)
	}
})

var roomFields = requestObject("Room", "How many messages of a queue are wanted at most.",
	required("queue", asText, func(m *Room) *string { return &m.Queue }, ""),
	required("max", whole[int](0, engine.MaxLease), func(m *Room) *int { return &m.Max }, "0: none"))

// Leased is the answer to a lease request.
type Leased struct {
	Messages []engine.Lease
	NextDue  time.Time
	Now      time.Time
	Set      string // the id of the set that the server keeps; "": none
	Queues   []Granted
	Waited   time.Duration // at most how long the request had waited when the messages were leased
}

// Granted is what the answer says of one queue besides its messages, which are in Leased.
// Err is read as an *Error.
type Granted struct {
	Queue  string
	Waited bool // it has only Expired, Died, Held and Err: More and NextDue are not known
	engine.Granted
}

// AppendLeased appends the answer to a lease request. Without queues, as in most answers
// after a wait, it leaves out that field.
func AppendLeased(b []byte, l *Leased, how Bodies) []byte {
	b = appendAll(append(b, `{"messages":`...), l.Messages, func(b []byte, m *engine.Lease) []byte { return AppendInfo(b, m, how) })
	return append(besideMessages.appendFields(b, l), '}')
}

// LeaseAnswer is the answer to a lease request.
var LeaseAnswer = answerObject("Leased", "What was leased.",
	required("messages", list(Info.kind("message"), 0).described(arraySchema(LeasedMessage.Ref(), engine.MaxLease)), func(l *Leased) *[]engine.Lease { return &l.Messages },
		"those that are yours now; none when the wait is over"),
	required("next_due", asInstant, func(l *Leased) *time.Time { return &l.NextDue }, "when there may be more; null: not known"),
	required("now", asTime, func(l *Leased) *time.Time { return &l.Now }, "by the clock of the store"),
	optional("set", asText.described(isName), func(l *Leased) *string { return &l.Set }, "the id of the set of queues, if the server keeps one"),
	optional("queues", list(grantedFields.kind("queue"), 0), func(l *Leased) *[]Granted { return &l.Queues }, "of the queues that were asked; after a wait of those alone that have something to tell"),
	optional("waited", asWaited, func(l *Leased) *time.Duration { return &l.Waited }, "how long the request had waited when the messages were leased, rounded down; none: less than 1 ms").
		unless(func(l *Leased) bool { return l.Waited < time.Millisecond }))

var (
	besideMessages = LeaseAnswer.only("", "", nil, LeaseAnswer.without("messages"))

	asWaited = scalar(isDuration, (*Reader).duration, func(b []byte, d time.Duration) []byte {
		return AppendDuration(b, d.Truncate(time.Millisecond))
	})
)

var grantedFields = answerObject("LeasedQueue", "What a lease request found in a queue.",
	required("queue", asText, func(g *Granted) *string { return &g.Queue }, ""),
	optional("more", asFlag, func(g *Granted) *bool { return &g.More }, "more is ready; not after a wait").unless(afterWait),
	optional("held", asFlag, func(g *Granted) *bool { return &g.Held }, "the queue's settings hold more back"),
	optional("next_due", asInstant, func(g *Granted) *time.Time { return &g.NextDue }, "when there may be more; not after a wait").unless(afterWait),
	required("expired", count[int](), func(g *Granted) *int { return &g.Expired }, "messages that expired since that was last told"),
	required("died", count[int]().described(TypeSchema("integer")), func(g *Granted) *int { return &g.Died }, "messages that died since that was last told; a late settlement takes a death back, so that it may be negative"),
	optional("error", asFailure, func(g *Granted) *error { return &g.Err }, "what went wrong with this queue"),
).checked(func(_ *Reader, got Fields, g *Granted) {
	const more = 1
	g.Waited = !got.Has(more)
})

func afterWait(g *Granted) bool { return g.Waited }

// Claim says how to claim.
type Claim struct {
	TTR    time.Duration // 0: the message's own
	Worker string        // its name; "": none
}

// Claiming is a claim.
var Claiming = requestObject("Claim", "How to claim.",
	optional("ttr", asTTR, func(c *Claim) *time.Duration { return &c.TTR }, ttrDoc+"; default: the message's own"),
	optional("worker", asWorker, func(c *Claim) *string { return &c.Worker }, workerDoc)).orNothing()

// PollEnding is a request to end the wait of this name.
var PollEnding = requestObject("EndLease", "Which wait to end.",
	required("poll", asName, itself, "the name that the lease request gave"))
