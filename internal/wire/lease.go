package wire

import (
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/duration"
)

// The bounds of a lease request.
const (
	MaxWait      = time.Minute // for the first message
	MaxQueues    = engine.MaxBatch
	MaxQueuesNow = 100 // without a wait: each is asked by itself
	MaxPollName  = 64  // bytes
)

// LeaseRequest asks for messages that are due.
type LeaseRequest struct {
	Queues []string
	Max    int           // messages; a request without it asks for one
	Wait   time.Duration // for the first message
	TTR    time.Duration // 0: each message's own
	Poll   string        // the name by which the wait can be ended; "": none
}

// AppendLeaseRequest appends a lease request.
func AppendLeaseRequest(b []byte, l *LeaseRequest) []byte {
	b = appendAll(append(b, `{"queues":`...), l.Queues, func(b []byte, q *string) []byte { return AppendString(b, *q) })
	b = appendInt(b, `,"max":`, int64(l.Max))
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

var leaseFields = []string{"queues", "max", "wait", "ttr", "poll"}

// LeaseRequest reads a lease request.
func (r *Reader) LeaseRequest() LeaseRequest {
	l := LeaseRequest{Max: 1}
	r.fields("request", leaseFields, func(f int) {
		switch f {
		case 0:
			r.texts("queues", MaxQueues, func(q string) { l.Queues = append(l.Queues, q) })
		case 1:
			if l.Max = int(r.whole("max", engine.MaxLease)); l.Max == 0 {
				r.Wrong("max: must be from 1 to %d", engine.MaxLease)
			}
		case 2:
			if l.Wait = r.duration("wait"); l.Wait > MaxWait {
				r.Wrong("wait: must be from 0s to %s", duration.Format(MaxWait))
			}
		case 3:
			l.TTR = r.ttr("ttr")
		case 4:
			l.Poll = r.poll()
		}
	})
	switch {
	case len(l.Queues) == 0:
		r.Wrong("queues: name at least one")
	case len(l.Queues) > MaxQueuesNow && l.Wait == 0:
		r.Wrong("queues: more than %d entries without a wait", MaxQueuesNow)
		r.hint("give a wait such as 1s, or ask in several requests")
	}
	r.end()
	return l
}

func (r *Reader) poll() string {
	name := r.text("poll")
	if r.err == nil && (name == "" || len(name) > MaxPollName) {
		r.Wrong("poll: a name has 1 to %d bytes", MaxPollName)
	}
	return name
}

// Leased is the answer to a lease request.
type Leased struct {
	Messages []engine.Lease
	NextDue  time.Time
	Now      time.Time
	Queues   []Granted
}

// Granted is what is told of one queue. Whatever went wrong with it is read as an
// *Error; its messages stand in Leased.
type Granted struct {
	Queue  string
	Waited bool // it tells only what ended: More and NextDue are not known
	engine.Granted
}

// AppendLeased appends the answer to a lease request. Without queues, which an answer
// after a wait mostly is, there is no such field.
func AppendLeased(b []byte, l *Leased, how Bodies) []byte {
	b = appendAll(append(b, `{"messages":`...), l.Messages, func(b []byte, m *engine.Lease) []byte { return AppendInfo(b, &m.Info, m.Token, how) })
	b = appendTime(b, `,"next_due":`, l.NextDue)
	b = appendTime(b, `,"now":`, l.Now)
	if len(l.Queues) > 0 {
		b = appendAll(append(b, `,"queues":`...), l.Queues, appendGranted)
	}
	return append(b, '}')
}

func appendGranted(b []byte, g *Granted) []byte {
	b = appendText(b, `{"queue":`, g.Queue)
	if !g.Waited {
		b = appendBool(b, `,"more":`, g.More)
		if g.Held {
			b = appendBool(b, `,"held":`, true)
		}
		b = appendTime(b, `,"next_due":`, g.NextDue)
	}
	b = appendInt(b, `,"expired":`, int64(g.Expired))
	b = appendInt(b, `,"died":`, int64(g.Died))
	if g.Err != nil {
		b = appendError(append(b, ','), Shown(g.Err))
	}
	return append(b, '}')
}

var leasedFields = []string{"messages", "next_due", "now", "queues"}

// Leased reads the answer to a lease request.
func (r *Reader) Leased() (l Leased) {
	r.fields("answer", leasedFields, func(f int) {
		switch f {
		case 0:
			r.all("messages", func() { l.Messages = append(l.Messages, r.Info()) })
		case 1:
			l.NextDue = r.time("next_due")
		case 2:
			l.Now = r.time("now")
		case 3:
			r.all("queues", func() { l.Queues = append(l.Queues, r.granted()) })
		}
	})
	return l
}

var grantedFields = []string{"queue", "more", "next_due", "expired", "died", "error", "held"}

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

// AppendClaim appends a claim. A ttr of 0 is the message's own.
func AppendClaim(b []byte, ttr time.Duration) []byte { return appendOption(b, `{"ttr":`, ttr) }

var claimFields = []string{"ttr"}

// Claim reads a claim.
func (r *Reader) Claim() (ttr time.Duration) {
	r.options(claimFields, func(int) { ttr = r.ttr("ttr") })
	return ttr
}

// AppendEndLease appends a request to end a wait.
func AppendEndLease(b []byte, poll string) []byte {
	return append(appendText(b, `{"poll":`, poll), '}')
}

var endFields = []string{"poll"}

// EndLease reads a request to end a wait.
func (r *Reader) EndLease() (poll string) {
	r.options(endFields, func(int) { poll = r.poll() })
	if poll == "" {
		r.Wrong("poll: name the one to end")
	}
	return poll
}
