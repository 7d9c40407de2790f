package intake

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
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
