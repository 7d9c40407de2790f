package intake

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
)

const (
	lanes     = 4       // batches in flight
	mostBatch = 256     // messages of a batch
	mostBytes = 1 << 20 // of bodies in a batch, unless one is larger
)

// session pushes what one Receive hands over. Messages with the same key go through the same
// lane, one batch after the other, so that they reach the store in order. It is the Sink.
type session struct {
	j       *job
	ctx     context.Context // ends when the session does: batches that fail are given up
	cancel  context.CancelFunc
	pushCtx context.Context // ends when the drain has taken too long
	cut     context.CancelFunc
	lanes   [lanes]chan *Message
	next    atomic.Uint32 // lane of a message without a key
	unacked atomic.Int64
	work    sync.WaitGroup
}

func newSession(j *job) *session {
	s := &session{j: j}
	s.ctx, s.cancel = context.WithCancel(j.life)
	s.pushCtx, s.cut = context.WithCancel(context.Background())
	for n := range s.lanes {
		s.lanes[n] = make(chan *Message, mostBatch)
		s.work.Go(func() { s.push(s.lanes[n]) })
	}
	return s
}

// end waits for the batches in flight. What has not begun stays unsettled.
func (s *session) end() {
	s.cancel()
	late := time.AfterFunc(s.j.drain, s.cut)
	s.work.Wait()
	late.Stop()
	s.cut()
	s.unacked.Store(0)
}

// Report records what the source says.
func (s *session) Report(trouble error) {
	s.j.report(func(h *health) { h.receiving, h.source = true, asTrouble(trouble) })
}

var seed = maphash.MakeSeed()

// Take puts a message in its lane.
func (s *session) Take(m *Message) {
	c := s.j.counters
	c.taken.Add(1)
	m.taken = time.Now()
	if m.Redelivered {
		c.redelivered.Add(1)
	}
	s.unacked.Add(1)
	if m.Refused != nil {
		s.settle(m, m.Refused)
		return
	}
	s.j.name(m)
	lane := uint64(s.next.Add(1))
	if key := m.Cancel + m.Draft.Key; key != "" {
		lane = maphash.String(seed, key)
	}
	select {
	case s.lanes[lane%lanes] <- m:
	case <-s.ctx.Done():
	}
}

// push pushes what comes through a lane, as many at a time as have arrived.
func (s *session) push(lane chan *Message) {
	for {
		var batch []*Message
		select {
		case m := <-lane:
			batch = gather(m, lane)
		case <-s.ctx.Done():
			return
		}
		for len(batch) > 0 {
			n := 1
			for n < len(batch) && (batch[n].Cancel == "") == (batch[0].Cancel == "") {
				n++
			}
			if !s.store(batch[:n]) {
				return
			}
			batch = batch[n:]
		}
	}
}

// gather returns a message and those that have arrived after it, without waiting.
func gather(m *Message, lane chan *Message) []*Message {
	batch, bytes := []*Message{m}, len(m.Draft.Body)
	for len(batch) < mostBatch && bytes < mostBytes {
		select {
		case m := <-lane:
			batch = append(batch, m)
			bytes += len(m.Draft.Body)
		default:
			return batch
		}
	}
	return batch
}

// settle settles a message at its source.
func (s *session) settle(m *Message, refused error) {
	if refused != nil {
		s.j.refuse(m, refused)
	}
	s.unacked.Add(-1)
	m.Settle(refused)
}

// hopeless are the errors of messages that no repetition would push.
var hopeless = []error{tarry.ErrInvalid, tarry.ErrTooLarge, tarry.ErrUnsupported, tarry.ErrExists, tarry.ErrLeased}

func isHopeless(err error) bool {
	for _, h := range hopeless {
		if errors.Is(err, h) {
			return true
		}
	}
	return false
}

// name completes the draft of a message: a key made of its sender's id, and the terms.
func (j *job) name(m *Message) {
	d, caps := &m.Draft, j.c.Capabilities()
	d.Queue = j.Queue
	switch {
	case d.Key != "":
		d.OnConflict = j.conflict
	case m.SenderID != "" && caps.Keys:
		d.Key, d.OnConflict = j.Name+"/"+m.SenderID, tarry.Keep
	}
	if d.Key != "" && caps.Remember {
		d.Remember = j.Remember
		if j.Remember < 0 {
			d.Remember = engine.Never
		}
	}
}

func (j *job) refuse(m *Message, why error) {
	j.counters.refused.Add(1)
	j.trouble.Note(refusal, "", "key", m.Draft.Key+m.Cancel, "error", why)
	j.health.set(func() { j.health.refused = why.Error() })
}
