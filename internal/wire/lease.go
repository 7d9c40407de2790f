package wire

import (
	"fmt"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/schema"
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
	Poll   string        // the name by which the wait can be ended; "": none
}

// Room is the most messages that are wanted of a queue.
type Room struct {
	Queue string
	Max   int
}

// AppendLeaseRequest appends a lease request.
func AppendLeaseRequest(b []byte, l *LeaseRequest) []byte {
	b = appendInt(b, `{"max":`, int64(l.Max))
	if l.Set != "" {
		b = appendText(b, `,"set":`, l.Set)
	} else {
		b = appendAll(append(b, `,"queues":`...), l.Queues, func(b []byte, q *string) []byte { return AppendString(b, *q) })
	}
	if l.Keep {
		b = appendBool(b, `,"keep":`, true)
	}
	if len(l.Room) > 0 {
		b = appendAll(append(b, `,"room":`...), l.Room, func(b []byte, room *Room) []byte {
			return append(appendInt(appendText(b, `{"queue":`, room.Queue), `,"max":`, int64(room.Max)), '}')
		})
	}
	if l.Wait > 0 {
		b = appendDuration(b, `,"wait":`, l.Wait)
	}
	if l.TTR > 0 {
		b = appendDuration(b, `,"ttr":`, l.TTR)
	}
	if l.Poll != "" {
		b = appendText(b, `,"poll":`, l.Poll)
	}
	return append(b, '}')
}

// Leasing is the shape of a lease request.
var Leasing = asked("LeaseRequest", "What to lease, and how long to wait for it. Give queues or set.",
	may("max", schema.Whole(1, engine.MaxLease), "how many messages at most; default: 1"),
	may("queues", schema.Array(isQueue, MaxQueues).With("minItems", 1), fmt.Sprintf("from which; at most %d without a wait", MaxQueuesNow)),
	may("set", isName, "the id of a set of queues that the server keeps, instead of queues; needs a wait"),
	may("keep", isFlag, "have the server keep the queues as a set; needs a wait"),
	may("room", schema.Array(roomFields.Ref(), MaxQueues), "queues of which fewer than max are wanted"),
	may("wait", isDuration, "how long to wait for the first message, at most "+duration.Format(MaxWait)+"; default: not at all"),
	may("ttr", isDuration, ttrDoc+"; default: each message's own"),
	may("poll", isName, "a name of your own, new for each request, by which the wait can be ended"))

const ttrDoc = "how long a lease lasts, 1ms to 24h"

// LeaseRequest reads a lease request.
func (r *Reader) LeaseRequest() LeaseRequest {
	l := LeaseRequest{Max: 1}
	r.fields("request", Leasing, func(f int) {
		switch f {
		case 0:
			l.Max = int(r.wholeFrom("max", 1, engine.MaxLease))
		case 1:
			r.texts("queues", MaxQueues, func(q string) { l.Queues = append(l.Queues, q) })
		case 2:
			l.Set = r.name("set")
		case 3:
			l.Keep = r.flag("keep")
		case 4:
			r.all("room", MaxQueues, func(int) { l.Room = append(l.Room, r.room()) })
		case 5:
			l.Wait = r.within("wait", 0, MaxWait)
		case 6:
			l.TTR = r.ttr("ttr")
		case 7:
			l.Poll = r.name("poll")
		}
	})
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
	r.end()
	return l
}

// name reads the name of a wait or the id of a set.
func (r *Reader) name(field string) string {
	name := r.text(field)
	if r.err == nil && (name == "" || len(name) > MaxPollName) {
		r.Wrong("%s: a name has 1 to %d bytes", field, MaxPollName)
	}
	return name
}

var roomFields = asked("Room", "How many messages of a queue are wanted at most.",
	must("queue", isText, ""),
	must("max", schema.Whole(0, engine.MaxLease), "0: none"))

// room reads a room of a lease request.
func (r *Reader) room() (room Room) {
	if r.fields("room", roomFields, func(f int) {
		switch f {
		case 0:
			room.Queue = r.text("queue")
		case 1:
			room.Max = int(r.whole("max", engine.MaxLease))
		}
	}) != 3 {
		r.Wrong("room: give a queue and its max")
	}
	return room
}

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
	b = appendAll(append(b, `{"messages":`...), l.Messages, func(b []byte, m *engine.Lease) []byte { return AppendInfo(b, &m.Info, m.Token, how) })
	b = appendTime(b, `,"next_due":`, l.NextDue)
	b = appendTime(b, `,"now":`, l.Now)
	if l.Set != "" {
		b = appendText(b, `,"set":`, l.Set)
	}
	if len(l.Queues) > 0 {
		b = appendAll(append(b, `,"queues":`...), l.Queues, appendGranted)
	}
	if waited := l.Waited.Truncate(time.Millisecond); waited > 0 {
		b = appendDuration(b, `,"waited":`, waited)
	}
	return append(b, '}')
}

func appendGranted(b []byte, g *Granted) []byte {
	b = appendText(b, `{"queue":`, g.Queue)
	if !g.Waited {
		b = appendBool(b, `,"more":`, g.More)
	}
	if g.Held {
		b = appendBool(b, `,"held":`, true)
	}
	if !g.Waited {
		b = appendTime(b, `,"next_due":`, g.NextDue)
	}
	b = appendInt(b, `,"expired":`, int64(g.Expired))
	b = appendInt(b, `,"died":`, int64(g.Died))
	if g.Err != nil {
		b = appendError(append(b, ','), Shown(g.Err))
	}
	return append(b, '}')
}

// LeaseAnswer is the shape of the answer to a lease request.
var LeaseAnswer = answered("Leased", "What was leased.",
	must("messages", schema.Array(LeasedMessage.Ref(), engine.MaxLease), "those that are yours now; none when the wait is over"),
	must("next_due", isInstant, "when there may be more; null: not known"),
	must("now", isTime, "by the clock of the store"),
	may("set", isName, "the id of the set of queues, if the server keeps one"),
	may("queues", schema.Array(grantedFields.Ref(), 0), "of the queues that were asked; after a wait of those alone that have something to tell"),
	may("waited", isDuration, "how long the request had waited when the messages were leased, rounded down; none: less than 1 ms"))

// Leased reads the answer to a lease request.
func (r *Reader) Leased() (l Leased) {
	r.fields("answer", LeaseAnswer, func(f int) {
		switch f {
		case 0:
			r.all("messages", 0, func(int) { l.Messages = append(l.Messages, r.Info()) })
		case 1:
			l.NextDue = r.time("next_due")
		case 2:
			l.Now = r.time("now")
		case 3:
			l.Set = r.text("set")
		case 4:
			r.all("queues", 0, func(int) { l.Queues = append(l.Queues, r.granted()) })
		case 5:
			l.Waited = r.duration("waited")
		}
	})
	return l
}

var grantedFields = answered("LeasedQueue", "What a lease request found in a queue.",
	must("queue", isText, ""),
	may("more", isFlag, "more is ready; not after a wait"),
	may("next_due", isInstant, "when there may be more; not after a wait"),
	must("expired", isCount, "messages that expired since that was last told"),
	must("died", schema.Type("integer"), "messages that died since that was last told; a late settlement takes a death back, so that it may be negative"),
	may("error", errorFields.Ref(), "what went wrong with this queue"),
	may("held", isFlag, "the queue's settings hold more back"))

func (r *Reader) granted() (g Granted) {
	seen := r.fields("queue", grantedFields, func(f int) {
		switch f {
		case 0:
			g.Queue = r.text("queue")
		case 1:
			g.More = r.flag("more")
		case 2:
			g.NextDue = r.time("next_due")
		case 3:
			g.Expired = int(r.count("expired"))
		case 4:
			g.Died = int(r.count("died"))
		case 5:
			g.Err = r.failure()
		case 6:
			g.Held = r.flag("held")
		}
	})
	g.Waited = seen&(1<<1) == 0
	return g
}

// AppendClaim appends a claim. A ttr of 0 means the message's own.
func AppendClaim(b []byte, ttr time.Duration) []byte { return appendOption(b, `{"ttr":`, ttr) }

// Claiming is the shape of a claim.
var Claiming = asked("Claim", "How to claim.",
	may("ttr", isDuration, ttrDoc+"; default: the message's own"))

// Claim reads a claim.
func (r *Reader) Claim() (ttr time.Duration) {
	r.options(Claiming, func(int) { ttr = r.ttr("ttr") })
	return ttr
}

// AppendEndLease appends a request to end a wait.
func AppendEndLease(b []byte, poll string) []byte {
	return append(appendText(b, `{"poll":`, poll), '}')
}

// PollEnding is the shape of a request to end a wait.
var PollEnding = asked("EndLease", "Which wait to end.",
	must("poll", isName, "the name that the lease request gave"))

// EndLease reads a request to end a wait.
func (r *Reader) EndLease() (poll string) {
	r.options(PollEnding, func(int) { poll = r.name("poll") })
	if poll == "" {
		r.Wrong("poll: name the one to end")
	}
	return poll
}
