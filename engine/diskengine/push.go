package diskengine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/memtable"
	"github.com/tarryhq/tarry/engine/diskengine/internal/record"
	"github.com/tarryhq/tarry/engine/diskengine/internal/store"
	"github.com/tarryhq/tarry/engine/diskengine/internal/wal"
	"github.com/tarryhq/tarry/engine/internal/rules"
)

// Push keeps each message or applies its conflict policy. It answers once that is durable.
func (e *Engine) Push(ctx context.Context, msgs []engine.Message) ([]engine.PushResult, error) {
	results := make([]engine.PushResult, len(msgs))
	for done, width, older := 0, len(msgs), keptBody(0); ; {
		to := min(len(msgs), done+width)
		n, more, err := e.pushSome(ctx, msgs[done:to], results[done:to], older)
		switch {
		case older > 0 && errors.Is(err, engine.ErrNoSpace):
			if to > done+1 {
				width = 1 // the push that keeps the large body may have no room, but the others may
				continue
			}
			results[done] = engine.PushResult{Err: err}
			n, older = 1, 0
		case err != nil && done == 0:
			return nil, err
		case err != nil: // those before done are durable
			for i := range results[done:] {
				results[done+i] = engine.PushResult{Err: err}
			}
			return results, nil
		case more == 0: // widen slowly: others may have no room either
			n, width, older = to-done, min(2*width, len(msgs)), 0
		default:
			older = max(more, leastAdmitted)
		}
		if done += n; done == len(msgs) {
			return results, nil
		}
	}
}

// pushSome pushes messages until older is too little for the body that one of them keeps. It
// returns how many it pushed and the size of that body; more is 0 if all are pushed.
func (e *Engine) pushSome(ctx context.Context, msgs []engine.Message, results []engine.PushResult, older keptBody) (pushed int, more keptBody, err error) {
	err = e.admitted(ctx, msgs, older, func(c *call) error {
		keys := c.lookupsFor(len(msgs))
		err := c.seek(len(msgs), func(i int) (string, string) { return msgs[i].Queue, msgs[i].Key }, keys)
		for from, to := 0, 0; from < len(msgs) && err == nil; from = to {
			if to = from + 1; isLarge(&msgs[from]) {
				c.prepare(&msgs[from])
			} else {
				for to < len(msgs) && !isLarge(&msgs[to]) {
					to++
				}
			}
			err = c.each(to-from, func(i int) error {
				r, err := c.push(&msgs[from+i], &keys[from+i])
				if store.IsUnreadable(err) {
					r, err = engine.PushResult{Err: c.unreadable(refOf(&msgs[from+i]), err)}, nil
				}
				results[from+i], pushed = r, from+i
				return err
			})
			c.unprepare()
		}
		return err
	})
	if older, ok := errors.AsType[keptBody](err); ok {
		return pushed, older, nil
	}
	return pushed, 0, err
}

// admitted runs a push of messages once it is let in for their bytes and for older, the bytes
// of bodies that it keeps.
func (e *Engine) admitted(ctx context.Context, msgs []engine.Message, older keptBody, do func(c *call) error) error {
	n := weight(msgs) + int64(older)
	leave, err := e.store.Enter(ctx, n)
	if err != nil {
		return err
	}
	defer leave()
	return e.do(ctx, "push", func(c *call) error {
		if err := e.store.Admit(ctx, n); err != nil {
			return err
		}
		defer e.store.Compactor.Came(n)
		c.keptRoom = older
		return do(c)
	})
}

// keptBody is the error of a push that keeps the large body of an older message, which is
// written again: the call was not let in for so many bytes.
type keptBody int

func (o keptBody) Error() string { return fmt.Sprintf("it keeps a body of %d bytes", int(o)) }

// smallBody is the size up to which a body that is kept does not count.
const smallBody = 64 << 10

// leastAdmitted is the least bytes of such bodies that a call is let in for once it has met one.
const leastAdmitted keptBody = 1 << 20

// keeps counts the content of an older message that a push keeps, or returns an keptBody.
func (c *call) keeps(in *engine.Message, content []byte) error {
	if len(content) <= smallBody {
		return nil
	}
	n := keptBody(max(0, len(content)-len(in.Body))) // in.Body was counted, but is not written
	if n > c.keptRoom {
		return n
	}
	c.keptRoom -= n
	return nil
}

// isLarge reports whether a body is too large for a step with others. It is copied before the
// lock is taken.
func isLarge(m *engine.Message) bool { return len(m.Body) > store.StepBytes }

// beforeBody is about the most bytes that a message has before its body.
func beforeBody(m *engine.Message) int {
	const rest = 4 << 10 // an error, delays, numbers
	return len(m.Key) + contentBytes([]engine.Message{*m}) - len(m.Body) + rest
}

// prepare copies a large body to memory of the memtable and of the log, without the lock.
func (c *call) prepare(m *engine.Message) {
	if c.e.refuseBody(m) == nil {
		n := beforeBody(m)
		c.ahead, c.prepared = c.e.store.Memtables.Ahead(n, m.Body), wal.Prepare(2*n, m.Body, c.e.store.Memtables.Borrow)
	}
}

// unprepare drops prepared copies that were not used.
func (c *call) unprepare() {
	if c.ahead != nil {
		c.ahead.Drop()
	}
	if c.prepared != nil {
		c.prepared.Drop()
	}
	c.ahead, c.prepared = nil, nil
}

// put appends a record. A prepared body is not copied: it becomes part of the entry.
func (c *call) put(p *record.Put) {
	if c.prepared == nil || p.Body == nil {
		c.group = p.Append(c.group)
		return
	}
	c.group = p.AppendHead(c.group)
	c.entry, c.prepared, c.before = c.prepared, nil, len(c.group)
}

// refOf names a message that is pushed.
func refOf(m *engine.Message) engine.Ref { return engine.Ref{Queue: m.Queue, Key: m.Key} }

// weight is about how many bytes messages take in the log.
func weight(msgs []engine.Message) (n int64) {
	const rest = 64 // of a record
	for i := range msgs {
		n += int64(len(msgs[i].Key) + rest)
	}
	return n + int64(contentBytes(msgs))
}

// contentBytes is how many bytes the bodies, content types and headers of messages have.
func contentBytes(msgs []engine.Message) (n int) {
	for i := range msgs {
		m := &msgs[i]
		n += len(m.Body) + len(m.ContentType)
		for _, h := range m.Headers {
			n += len(h.Name) + len(h.Value)
		}
	}
	return n
}

// maxBody is the most bytes of a body. A body is read whole, and written whole in one entry of
// the log.
const maxBody = 64 << 20

func (e *Engine) maxBody() int { return min(maxBody, e.cfg.tune.Entry/4) }

// refuseBody refuses a message that is too large.
func (e *Engine) refuseBody(in *engine.Message) error {
	most := e.maxBody()
	if len(in.Body) <= most {
		return nil
	}
	return &engine.Error{Op: "push", Queue: in.Queue, Key: in.Key, Err: engine.ErrTooLarge,
		Hint: fmt.Sprintf("a body has at most %d bytes on the disk; keep a larger one elsewhere and send its address", most)}
}

// push pushes one message. Its error ends the whole call; an error of the message is in the
// result.
func (c *call) push(in *engine.Message, hash *keyLookup) (engine.PushResult, error) {
	if err := c.e.refuseBody(in); err != nil {
		return engine.PushResult{Err: err}, nil
	}
	q, err := c.visit(in.Queue, true)
	if errors.Is(err, engine.ErrLimit) {
		return engine.PushResult{Err: err}, nil
	}
	if err != nil {
		return engine.PushResult{}, err
	}
	h, err := c.holderOf(q, in.Key, hash)
	if err != nil {
		return engine.PushResult{}, err
	}
	if in.Token != "" {
		c.see(q)
	}
	o, refused := rules.Push(in, &h.Holder)
	switch o {
	case engine.Replaced:
		return c.replace(&h.m, in)
	case engine.Created:
		if refused == nil {
			refused = q.settings.RefusePending(refOf(in), q.live)
		}
		if refused != nil {
			return engine.PushResult{Err: refused}, nil
		}
	default:
		c.see(q)
		return c.result(&h, o, refused), nil
	}
	if most := c.e.cfg.MaxPending; most > 0 && c.e.live >= most {
		return engine.PushResult{Err: engine.Refuse("push", refOf(in), engine.ErrLimit)}, nil
	}
	if h.remembered {
		c.forgetFinished(q, &h.trace)
	}
	return c.create(q, in), nil
}

// holder is what has the key of a push.
type holder struct {
	rules.Holder
	m          message     // if it is live
	trace      finishedKey // if the key is remembered, perhaps longer than it should be
	remembered bool
}

// holderOf finds what has a key.
func (c *call) holderOf(q *queue, key string, hash *keyLookup) (h holder, err error) {
	if key == "" {
		return h, nil
	}
	var live bool
	if h.m, live, err = c.unexpired(c.messageOfKey(q, memtable.Live, []byte(key), hash)); err != nil {
		return h, err
	}
	if live {
		h.State, h.Lease = h.m.state(c.ms), h.m.token()
		return h, nil
	}
	if h.trace, h.remembered, err = c.finished(q, []byte(key), hash); h.remembered && h.trace.forgotten > c.ms {
		h.Holder = rules.Holder{State: engine.Finished, Ending: h.trace.Ending, Ended: h.trace.Ended}
	}
	return h, err
}

// create makes a new message.
func (c *call) create(q *queue, in *engine.Message) engine.PushResult {
	e := c.e
	due := in.Due.Resolve(c.now)
	id := e.nextID
	e.nextID++
	content := record.Content{Created: c.ms, Policy: in.Resolve(q.settings.Terms()), Content: in.Content}
	s := record.State{Due: due, Expires: rules.Expiry(due, &content.Policy)}
	c.contentOf(&content)
	c.put(&record.Put{ID: id, Queue: q.num, New: true, Key: []byte(in.Key), State: s, Content: c.content, Body: in.Body})
	c.touch(q)
	c.value = record.AppendValue(c.value[:0], &s, c.content)
	e.store.Memtables.Add(memtable.Entry{ID: uint64(id), Queue: q.num, Area: memtable.Live, At: due, Key: []byte(in.Key), Value: c.value, Tail: in.Body, Ahead: c.ahead})
	q.live++
	e.live++
	c.waits(q, store.Item{Due: due, ID: id, Priority: content.Priority, Epoch: e.store.Epoch})
	r := engine.PushResult{Outcome: engine.Created, ID: id, Due: rules.Instant(due), State: engine.Scheduled}
	if due <= c.ms {
		r.State = engine.Ready
	}
	return r
}

// contentOf encodes a content without its body into c.content. The body follows it; it is
// copied only once, to its final place.
func (c *call) contentOf(content *record.Content) {
	content.Body = nil
	c.content = content.Append(c.content[:0])
}

// result is the result of a push that changes nothing.
func (c *call) result(h *holder, o engine.Outcome, refused error) engine.PushResult {
	r := engine.PushResult{Outcome: o, State: h.State, Err: refused}
	switch h.State {
	case engine.Gone:
	case engine.Finished:
		r.ID, r.Due, r.Ending, r.Ended = h.trace.id, rules.Instant(h.trace.Due), h.Ending, rules.Instant(h.Ended)
	default:
		r.ID, r.Due = h.m.id, rules.Instant(h.m.Due)
	}
	return r
}

// replace gives the message that has the key of a push what the push says.
func (c *call) replace(m *message, in *engine.Message) (engine.PushResult, error) {
	c.see(m.q)
	var content, body []byte
	policy := m.Policy
	if in.OnConflict == engine.Rearm {
		if err := c.needContent(m); err != nil {
			return engine.PushResult{}, err
		}
		content = m.content
		if err := c.keeps(in, content); err != nil {
			return engine.PushResult{}, err
		}
	} else {
		policy = in.Resolve(m.q.settings.Terms())
		c.contentOf(&record.Content{Created: m.Created, Policy: policy, Content: in.Content})
		content, body = c.content, in.Body
	}
	s := m.base()
	if in.OnConflict != engine.KeepDue {
		s.Due = in.Due.Resolve(c.now)
	}
	s.Expires, s.Attempt = rules.Expiry(s.Due, &policy), 0
	c.rewrite(m, s, content, body)
	m.State, m.Priority, m.lease = s, policy.Priority, nil // attach needs no more
	c.attach(m)
	return engine.PushResult{Outcome: engine.Replaced, ID: m.id, Due: rules.Instant(m.Due), State: m.state(c.ms)}, nil
}
