package enginetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Model is the reference engine: the whole contract except LeaseWaiter, in memory, written
// to be obviously right rather than fast. Every call looks at every message. TransitionTable
// says what a call does to a message. It is safe for concurrent use.
type Model struct {
	mu  sync.Mutex
	now func() time.Time
	contents
	watchers map[int]func(string)
	watching int
	lastID   engine.ID
	closed   bool

	// nextIDs, if not empty, are the ids of the next messages. With them the model orders
	// messages as the compared engine does.
	nextIDs []engine.ID

	// refused, if not nil, reports whether the compared engine refused the i-th push of the
	// call by max_pending. The engine may do so if the room left depends on expired messages
	// that it may not have noticed.
	refused func(i int, queue string, room int64) bool

	// granted, if not nil, is the compared engine's answer to the current lease. It decides
	// what the model cannot know about unsure messages.
	granted *engine.Grant

	// shown, if not nil, reports whether the compared engine shows a finished message that it
	// may have dropped, or whose end it may not have noticed.
	shown func(id engine.ID) bool
}

// contents is everything that a model holds.
type contents struct {
	msgs     []*modelMessage // in the order of creation
	memories []*memory       // one for each key
	past     []*past         // all messages that ever finished and were not purged
	pauses   map[string]time.Time
	settings map[string]configured
	buckets  map[string]rules.Bucket // of the queues with a rate

	// expired has, by queue, the expired messages that no Lease has counted yet.
	expired map[string][]engine.ID
	// ghosts are all messages that ever expired.
	ghosts map[engine.ID]ghost
	// faded counts, by queue, the expired memories of keys.
	faded map[string]int64
	// culled counts, by queue, the dead messages that settings have dropped.
	culled map[string]int64
	// met is, by queue, how many of the faded and the culled an engine has certainly noticed.
	// After a crash it may have to notice all of them again.
	met map[string]slack
	// dropped are the culled messages. They reappear if a crash lost the leases that led to
	// their death.
	dropped []*modelMessage
}

// copied returns an independent copy.
func (c *contents) copied() contents {
	o := contents{
		memories: slices.Clone(c.memories), pauses: maps.Clone(c.pauses),
		settings: maps.Clone(c.settings), buckets: maps.Clone(c.buckets),
		expired: map[string][]engine.ID{}, ghosts: maps.Clone(c.ghosts), faded: maps.Clone(c.faded), culled: maps.Clone(c.culled), met: maps.Clone(c.met),
		dropped: slices.Clone(c.dropped),
	}
	for _, x := range c.msgs {
		y := *x
		o.msgs = append(o.msgs, &y)
	}
	for _, y := range c.past {
		o.past = append(o.past, new(*y))
	}
	for queue, all := range c.expired {
		o.expired[queue] = slices.Clone(all)
	}
	return o
}

// modelMessage is a message in the model. It has all its failures, and the Worker of its last
// lease. Its State is Scheduled for a waiting message,
// Leased until something ends the lease, or Dead. The due time says whether a waiting message
// is ready, and the deadline whether a lease has lapsed.
type modelMessage struct {
	engine.Info
	token  string
	remote bool // leased by Want.Remote
	// extended: the lease was extended, so an engine may treat it as one of another process.
	extended bool
	// vague: without Abilities.Failures it is open whether LastError is still an older reason.
	vague bool
	// unsure: a crash has lost its last lease, or that was given back unanswered, so it is open
	// whether the lease before counts as lapsed.
	unsure bool
}

// forGood marks a pause without an end.
var forGood = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// NewModel returns an empty model whose clock is now.
func NewModel(now func() time.Time) *Model {
	return &Model{now: now, watchers: map[int]func(string){}, contents: contents{
		pauses: map[string]time.Time{}, settings: map[string]configured{}, buckets: map[string]rules.Bucket{},
		expired: map[string][]engine.ID{}, ghosts: map[engine.ID]ghost{}, faded: map[string]int64{}, culled: map[string]int64{}, met: map[string]slack{},
	}}
}

// Capabilities reports that the model can do everything but LeaseWait.
func (m *Model) Capabilities() engine.Capabilities {
	c := engine.Full("model")
	c.Atomic = true
	return c
}

// Close makes all later calls fail with ErrClosed.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// Watch calls fn after every change that may make a queue due sooner.
func (m *Model) Watch(fn func(queue string)) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watching++
	n := m.watching
	m.watchers[n] = fn
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watchers, n)
	}
}

// ghost is what an engine still holds of an expired message until it notices the expiry.
type ghost struct {
	queue   string
	due     time.Time
	expires time.Time
}

// begin locks the model for one call, drops expired messages and returns the instant of the
// call.
func (m *Model) begin(ctx context.Context, op string) (time.Time, error) {
	m.mu.Lock()
	err := ctx.Err()
	if m.closed {
		err = engine.ErrClosed
	}
	if err != nil {
		m.mu.Unlock()
		return time.Time{}, &engine.Error{Op: op, Err: err}
	}
	now := m.now()
	m.advance(now)
	return now, nil
}

// advance applies the passage of time: messages expire, keys are forgotten, and old dead
// messages are dropped.
func (m *Model) advance(now time.Time) {
	for _, x := range slices.Clone(m.msgs) {
		past := !x.Expires.IsZero() && now.After(x.Expires)
		if past && transition(x.situation(now), opExpiryPasses).Next == toFinished {
			m.expired[x.Queue] = append(m.expired[x.Queue], x.ID)
			m.ghosts[x.ID] = ghost{x.Queue, x.Due, x.Expires}
			m.end(x, engine.Expired, "", x.Expires, now)
		}
	}
	m.fade(now)
	m.age(now)
	m.cull(now)
}

func (m *Model) hint(queue string) {
	for _, fn := range m.watchers {
		fn(queue)
	}
}

// situation returns the situation of x at now.
func (x *modelMessage) situation(now time.Time) Situation {
	switch {
	case x == nil:
		return absent
	case x.State == engine.Dead:
		return dead
	case x.State == engine.Leased && now.Before(x.Deadline):
		return leased
	case x.State == engine.Leased && x.Attempt >= x.MaxAttempts:
		return spent
	case x.State == engine.Leased && !x.Due.After(now):
		return lapsed
	case x.Due.After(now): // also if its lease ended in a crash after the clock went back
		return scheduled
	default:
		return ready
	}
}

var shownAs = map[Situation]engine.State{
	scheduled: engine.Scheduled, ready: engine.Ready, leased: engine.Leased,
	lapsed: engine.Ready, spent: engine.Dead, dead: engine.Dead,
}

// info returns what the engine shows of x at now.
func (x *modelMessage) info(now time.Time) engine.Info {
	i := x.Info
	s := x.situation(now)
	i.State = shownAs[s]
	if x.over(now) {
		i.LastError, i.Failures = engine.Lapsed, x.failed(x.Deadline, engine.Lapsed)
	}
	i.Failures = slices.Clone(i.Failures[max(0, len(i.Failures)-engine.MaxFailures):])
	if s == spent {
		i.Died = i.Deadline
	}
	if i.State != engine.Leased {
		i.Deadline, i.Started, i.Worker = time.Time{}, time.Time{}, ""
	}
	i.Body = slices.Clone(i.Body)
	i.Headers = slices.Clone(i.Headers)
	i.Backoff = slices.Clone(i.Backoff)
	return i
}

func (x *modelMessage) setDue(due time.Time) {
	x.Due, x.Expires = due, time.Time{}
	if x.ExpireAfter > 0 {
		x.Expires = due.Add(x.ExpireAfter)
	}
}

// wait makes x a message that waits for its due time, without a lease.
func (x *modelMessage) wait() {
	x.State, x.token, x.Deadline, x.unsure = engine.Scheduled, "", time.Time{}, false
}

func (x *modelMessage) die(now time.Time) {
	x.wait()
	x.State, x.Died, x.vague = engine.Dead, now, false
}

// over reports whether the lease of x has lapsed and nothing has been decided since.
func (x *modelMessage) over(now time.Time) bool {
	return x.State == engine.Leased && !now.Before(x.Deadline)
}

// failed returns the failures of x with one more.
func (x *modelMessage) failed(at time.Time, reason string) []engine.Failure {
	return append(slices.Clip(x.Failures), engine.Failure{At: at, Attempt: x.Attempt, Worker: x.Worker, Reason: reason})
}

func (x *modelMessage) fail(at time.Time, reason string) {
	x.LastError, x.Failures = reason, x.failed(at, reason)
}

// lapse records the failure of a lapsed lease before something is decided on x.
func (x *modelMessage) lapse(now time.Time) {
	if x.over(now) && transition(leased, opLapse).Fails {
		x.fail(x.Deadline, engine.Lapsed)
		x.vague = true
	}
}

func (x *modelMessage) count(c Count) {
	switch c {
	case zero:
		x.Attempt = 0
	case plusOne:
		x.Attempt++
	case minusOne:
		x.Attempt -= min(1, x.Attempt)
	}
}

// live returns the live message of the queue that holds key, or nil.
func (m *Model) live(queue, key string, now time.Time) *modelMessage {
	for _, x := range m.msgs {
		if key != "" && x.Queue == queue && x.Key == key && x.info(now).State.Live() {
			return x
		}
	}
	return nil
}

// find returns the message that ref names: by key the live one, else the newest dead one.
func (m *Model) find(ref engine.Ref, now time.Time) *modelMessage {
	if ref.ID == 0 {
		if x := m.live(ref.Queue, ref.Key, now); x != nil {
			return x
		}
	}
	var best *modelMessage
	for _, x := range m.msgs {
		if x.Queue != ref.Queue || ref.ID != 0 && x.ID != ref.ID || ref.ID == 0 && (ref.Key == "" || x.Key != ref.Key) {
			continue
		}
		if best == nil || byDeath(x.info(now), best.info(now)) > 0 {
			best = x
		}
	}
	return best
}

func (m *Model) remove(x *modelMessage) {
	m.msgs = slices.DeleteFunc(m.msgs, func(y *modelMessage) bool { return x == y })
}

func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// Push stores each message or applies its conflict policy.
func (m *Model) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	now, err := m.begin(ctx, "push")
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	results := make([]engine.PushResult, len(msgs))
	for i := range msgs {
		results[i] = m.push(i, &msgs[i], now)
	}
	return results, nil
}

// PushAtomic is Push, but stores nothing if anything fails.
func (m *Model) PushAtomic(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	now, err := m.begin(ctx, "push")
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if err := engine.CheckAtomic(msgs); err != nil {
		results := make([]engine.PushResult, len(msgs))
		for i := range results {
			results[i].Err = err
		}
		return results, err
	}
	before := m.copied()
	results := make([]engine.PushResult, len(msgs))
	for i := range msgs {
		results[i] = m.push(i, &msgs[i], now)
		if err := results[i].Err; err != nil {
			m.contents = before
			failed := make([]engine.PushResult, len(msgs))
			for j := range failed {
				failed[j].Err = err
			}
			failed[i] = results[i]
			return failed, err
		}
	}
	return results, nil
}

// push pushes the i-th message of a call.
func (m *Model) push(i int, msg *engine.Message, now time.Time) engine.PushResult {
	m.advance(now) // a message pushed before it in the same call may have expired
	ref := engine.Ref{Queue: msg.Queue, Key: msg.Key}
	x := m.find(ref, now)
	s, gone := m.standing(ref, x, now)
	t := transition(s, pushOps[msg.OnConflict])
	if msg.Token != "" {
		t = x.exchange(s, msg.Token)
	}
	due := instant(msg.Due.Resolve(now))
	r := engine.PushResult{}
	switch t.Result {
	case "created":
		if most := m.settings[msg.Queue].MaxPending; most > 0 {
			room := most - m.pending(msg.Queue, now)
			if room <= 0 || m.refused != nil && m.refused(i, msg.Queue, room) {
				return engine.PushResult{Err: engine.RefusePending(ref, most)}
			}
		}
		m.forget(msg.Queue, msg.Key)
		gone = nil
		x = &modelMessage{Info: engine.Info{ID: m.newID(), Queue: msg.Queue, Key: msg.Key, Created: instant(now.UnixMilli())}}
		m.take(x, msg)
		x.wait()
		x.setDue(due)
		m.msgs = append(m.msgs, x)
		m.hint(x.Queue)
		r.Outcome = engine.Created
	case "replaced":
		if msg.OnConflict == engine.KeepDue {
			due = x.Due
		}
		if msg.OnConflict != engine.Rearm {
			m.take(x, msg)
		}
		x.lapse(now)
		x.wait()
		x.setDue(due)
		x.count(t.Attempt)
		x.vague = true
		m.hint(x.Queue)
		r.Outcome = engine.Replaced
	case "kept":
		r.Outcome = engine.Kept
	case "lease_lost":
		return engine.PushResult{Err: fail("push", ref, t)}
	case "exists":
		if gone != nil {
			r.Err = engine.RefuseFinished(ref, gone.how, gone.ended)
			break
		}
		fallthrough
	default:
		r.Err = fail("push", engine.Ref{Queue: msg.Queue, Key: msg.Key, ID: x.ID}, t)
	}
	if gone != nil {
		r.ID, r.Due, r.State, r.Ending, r.Ended = gone.id, gone.due, engine.Finished, gone.how, gone.ended
		return r
	}
	r.ID, r.Due, r.State = x.ID, x.Due, x.info(now).State
	return r
}

// exchange returns what a push with a token does to x in situation s.
func (x *modelMessage) exchange(s Situation, token string) Transition {
	switch {
	case x == nil || x.token != token:
		s = absent
	case s == scheduled: // it lapsed after the clock went back, as in settle
		s = lapsed
	}
	return transition(s, opPushToken)
}

// take gives x the content of msg, and the policy that its terms and the queue's resolve to.
func (m *Model) take(x *modelMessage, msg *engine.Message) {
	defaults := m.settings[msg.Queue].Defaults
	x.Content, x.Policy = msg.Content, msg.Resolve(&defaults)
	x.Body = slices.Clone(msg.Body)
	x.Headers = slices.Clone(msg.Headers)
	x.Backoff = slices.Clone(x.Backoff)
}

func (m *Model) newID() engine.ID {
	if len(m.nextIDs) > 0 {
		m.lastID, m.nextIDs = m.nextIDs[0], m.nextIDs[1:]
		delete(m.ghosts, m.lastID) // that id was only assumed, for a push that was not answered
	} else {
		m.lastID++
	}
	return m.lastID
}

func newToken(id engine.ID) string { return id.String() + "-" + rand.Text() }

// fail returns the error of a refused transition.
func fail(op string, ref engine.Ref, t Transition) error {
	err := t.Err()
	if err == engine.ErrNotFound && (t.State == dead || t.State == spent) {
		return engine.RefuseDead(op, ref)
	}
	return engine.Refuse(op, ref, err)
}

func byLease(a, b engine.Info) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID))
}

func byDue(a, b engine.Info) int { return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.ID, b.ID)) }

func byDeadline(a, b engine.Info) int {
	return cmp.Or(a.Deadline.Compare(b.Deadline), cmp.Compare(a.ID, b.ID))
}

func byDeath(a, b engine.Info) int { return cmp.Or(a.Died.Compare(b.Died), cmp.Compare(a.ID, b.ID)) }
