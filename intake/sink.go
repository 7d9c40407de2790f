package intake

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/notify"
)

const (
	// mostHeld is how many messages wait for the store, and also to be set aside. With more,
	// Take blocks.
	mostHeld = 1000

	leastPause = 100 * time.Millisecond // between two attempts of what fails
	mostPause  = 10 * time.Second
)

// Sink takes the messages of one connection. It pushes them in order.
type Sink struct {
	*job
	conn     Conn
	ctx      context.Context // when it ends, what has not begun stays unsettled
	pushes   context.Context // ends when the drain has taken too long
	waiting  chan *Message
	held     map[string]bool // IDs of messages that are not settled; guarded by job.mu
	received bool

	aside []*Message       // refused, and not set aside yet
	again <-chan time.Time // when that is tried again; nil: nothing has failed
	pause calls.Pause
}

// Report says that the source receives, or with a *Trouble that something is wrong although it
// goes on.
func (s *Sink) Report(trouble error) {
	s.received = true
	s.report(func(w *wrong) { w.source = trouble })
}

// Take takes a message. It blocks while the intake is full. Once Receive has returned, or if the
// message is held already, it is dropped.
func (s *Sink) Take(m *Message) {
	m.taken = time.Now()
	dropped := false
	s.count(func(st *Status) {
		if dropped = s.held[m.ID] || s.ctx.Err() != nil; dropped {
			return
		}
		if m.ID != "" {
			s.held[m.ID] = true
		}
		st.Taken++
		st.Unacked++
		if m.Redelivered {
			st.Redelivered++
		}
	})
	if dropped {
		return
	}
	if m.Refused != nil {
		s.refuse(m, m.Refused)
	}
	s.complete(m)
	select {
	case s.waiting <- m:
	case <-s.ctx.Done():
	}
}

// Held returns the IDs of the messages that are not settled.
func (s *Sink) Held() (ids map[string]bool) {
	s.count(func(*Status) { ids = maps.Clone(s.held) })
	return ids
}

// complete completes the draft of a message: a key made of its id, and the terms.
func (s *Sink) complete(m *Message) {
	d, caps := &m.Draft, s.c.Capabilities()
	d.Queue = s.in.Queue
	switch id := cmp.Or(m.SenderID, m.ID); {
	case d.Key != "":
		d.OnConflict = s.conflict
	case id != "" && caps.Keys:
		d.Key, d.OnConflict = s.in.Name+"/"+id, tarry.Keep
	}
	if d.Key != "" && caps.Remember {
		d.Remember = s.in.Remember
	}
}

// run pushes messages, as many at a time as have come.
func (s *Sink) run() {
	for {
		waiting := s.waiting
		if len(s.aside) >= mostHeld {
			waiting = nil
		}
		select {
		case m := <-waiting:
			for m != nil {
				m = s.push(m)
			}
			if s.again == nil {
				s.setAside()
			}
		case <-s.again:
			s.setAside()
		case <-s.ctx.Done():
			return
		}
	}
}

var refusal = notify.Trouble{Text: "messages were refused and set aside at their source", Level: slog.LevelWarn}

// refuse counts a message that can never be pushed.
func (s *Sink) refuse(m *Message, why error) {
	m.Refused = why
	s.trouble.Note(refusal, "", "key", m.Draft.Key+m.Cancel, "error", why)
	s.count(func(st *Status) {
		st.Refused++
		st.LastRefused = why.Error()
	})
}

// setAside has refused messages set aside, up to the first that cannot be: that is tried again
// later, after the others.
func (s *Sink) setAside() {
	s.again = nil
	for len(s.aside) > 0 && s.again == nil {
		m := s.aside[0]
		s.aside = s.aside[1:]
		err := s.conn.SetAside(m, m.reason())
		if err == nil {
			s.pause.Reset()
			s.ack(m)
		} else {
			s.aside, s.again = append(s.aside, m), time.After(s.pause.Next())
		}
		if err != nil || len(s.aside) == 0 {
			s.report(func(w *wrong) { w.aside = err })
		}
	}
}

// ack acks settled messages. If that fails they come again.
func (s *Sink) ack(ms ...*Message) {
	if len(ms) == 0 {
		return
	}
	err := s.conn.Ack(ms)
	s.report(func(w *wrong) { w.ack = err })
	s.count(func(st *Status) {
		for _, m := range ms {
			delete(s.held, m.ID)
		}
		st.Unacked -= int64(len(ms))
	})
}

const (
	mostBatch = 256     // messages that go to the store at a time
	mostBytes = 1 << 20 // of their bodies, unless one is larger

	storeTime = 30 * time.Second // bounds a call of the store
)

// push pushes a message and those that have come after it, and then cancels. It returns a
// message that must come after these: a push of a key that one of them cancels.
func (s *Sink) push(m *Message) (next *Message) {
	var pushes, cancels []*Message
	cancelled := make(map[string]bool) // keys
	for n, bytes := 1, 0; m != nil && !cancelled[m.Draft.Key]; n++ {
		switch {
		case m.Refused != nil:
			s.aside = append(s.aside, m)
		case m.Cancel != "":
			cancels, cancelled[m.Cancel] = append(cancels, m), true
		default:
			pushes, bytes = append(pushes, m), bytes+len(m.Draft.Body)
		}
		if m = nil; n < mostBatch && bytes < mostBytes && len(s.waiting) > 0 {
			m = <-s.waiting
		}
	}
	if s.settle(pushes, s.pushAll) {
		s.settle(cancels, s.cancelAll)
	}
	return m
}

// hopeless are the errors of messages that no repetition would push.
var hopeless = []error{tarry.ErrInvalid, tarry.ErrTooLarge, tarry.ErrUnsupported, tarry.ErrExists, tarry.ErrLeased}

// settle calls the store until it has answered for each message, and acks those that it has
// taken. It reports false if the session has ended before.
func (s *Sink) settle(left []*Message, call func(context.Context, []*Message)) bool {
	for pause := (calls.Pause{Least: leastPause, Most: mostPause}); len(left) > 0; {
		ctx, cancel := context.WithTimeout(s.pushes, storeTime)
		call(ctx, left)
		cancel()
		var done, again []*Message
		var failed error
		for _, m := range left {
			switch {
			case m.err == nil:
				s.count(func(*Status) { *m.counter++ })
				done = append(done, m)
			case slices.ContainsFunc(hopeless, func(h error) bool { return errors.Is(m.err, h) }):
				s.refuse(m, m.err)
				s.aside = append(s.aside, m)
			default:
				again, failed = append(again, m), storeTrouble(m.err)
			}
		}
		s.ack(done...)
		s.report(func(w *wrong) { w.store = failed })
		if left = again; failed != nil && !pause.Wait(s.ctx) {
			return false
		}
	}
	return true
}

func (s *Sink) pushAll(ctx context.Context, ms []*Message) {
	drafts := make([]tarry.Draft, len(ms))
	for n, m := range ms {
		drafts[n] = m.Draft
		if in := &drafts[n].Due.In; *in > 0 {
			*in = max(0, *in-time.Since(m.taken)) // the delay counts from when it came
		}
	}
	results, err := s.c.PushMany(ctx, drafts)
	for n, m := range ms {
		if m.err = err; err != nil {
			if m.Draft.Key == "" && !m.doubtful {
				s.count(func(st *Status) { st.Doubtful++ })
			}
			m.doubtful = true
			continue
		}
		r, again := results[n], m.Redelivered || m.doubtful
		m.err, m.counter = r.Err, &s.status.Pushed
		if r.Err == nil && r.Outcome == tarry.Kept || again && errors.Is(r.Err, tarry.ErrExists) {
			m.err, m.counter = nil, &s.status.Doubles
		}
	}
}

func (s *Sink) cancelAll(ctx context.Context, ms []*Message) {
	refs := make([]tarry.Ref, len(ms))
	for n, m := range ms {
		refs[n] = tarry.ByKey(m.Cancel).Of(s.in.Queue)
	}
	results, err := s.c.CancelMany(ctx, refs)
	for n, m := range ms {
		if m.err = err; err != nil {
			continue
		}
		m.err, m.counter = results[n].Err, &s.status.Cancelled
		if errors.Is(m.err, tarry.ErrNotFound) || errors.Is(m.err, tarry.ErrLeased) {
			m.err, m.counter = nil, &s.status.Missed
		}
	}
}
