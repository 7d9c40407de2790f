package intake

import (
	"cmp"
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
)

const (
	lanes     = 4       // batches in flight
	mostBatch = 256     // messages of a batch
	mostBytes = 1 << 20 // of bodies in a batch, unless one is larger
)

// session pushes what one Receive hands over. Messages with the same key go through the same
// lane, one batch after the other, so that they reach the store in order. It is the Sink.
type session struct {
	*job
	ctx     context.Context // ends when the session does: batches that fail are given up
	cancel  context.CancelFunc
	pushCtx context.Context // ends when the drain has taken too long
	cut     context.CancelFunc
	lanes   [lanes]chan *Message
	next    atomic.Uint64 // lane of a message without a key
	work    sync.WaitGroup
}

func newSession(j *job) *session {
	s := &session{job: j}
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
	late := time.AfterFunc(s.drain, s.cut)
	s.work.Wait()
	late.Stop()
	s.cut()
	s.health.count(func(st *Status) { st.Unacked = 0 })
}

// Report records what the source says.
func (s *session) Report(trouble error) {
	s.report(func(h *health) { h.receiving, h.source = true, asTrouble(trouble) })
}

var seed = maphash.MakeSeed()

// Take puts a message in its lane.
func (s *session) Take(m *Message) {
	m.taken = time.Now()
	s.health.count(func(st *Status) {
		st.Taken++
		st.Unacked++
		if m.Redelivered {
			st.Redelivered++
		}
	})
	if m.Refused != nil {
		s.refuse(m, m.Refused)
		return
	}
	s.complete(m)
	lane := s.next.Add(1)
	if key := cmp.Or(m.Cancel, m.Draft.Key); key != "" {
		lane = maphash.String(seed, key)
	}
	select {
	case s.lanes[lane%lanes] <- m:
	case <-s.ctx.Done():
	}
}

// complete completes the draft of a message: a key made of its sender's id, and the terms.
func (s *session) complete(m *Message) {
	d, caps := &m.Draft, s.c.Capabilities()
	d.Queue = s.Queue
	switch {
	case d.Key != "":
		d.OnConflict = s.conflict()
	case m.SenderID != "" && caps.Keys:
		d.Key, d.OnConflict = s.Name+"/"+m.SenderID, tarry.Keep
	}
	if d.Key != "" && caps.Remember {
		d.Remember = s.Remember
	}
}

// push pushes what comes through a lane, as many at a time as have arrived.
func (s *session) push(lane chan *Message) {
	for {
		select {
		case m := <-lane:
			for batch := gather(m, lane); len(batch) > 0; {
				n := 1
				for n < len(batch) && (batch[n].Cancel == "") == (batch[0].Cancel == "") {
					n++
				}
				if !s.store(batch[:n]) {
					return
				}
				batch = batch[n:]
			}
		case <-s.ctx.Done():
			return
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
