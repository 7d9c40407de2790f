package enginetest

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tarryhq/tarry/engine"
)

// Cancel removes messages.
func (m *Model) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	now, err := m.begin(ctx, "cancel")
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	results := make([]error, len(refs))
	for i, ref := range refs {
		op := opCancelKey
		if ref.ID != 0 {
			op = opCancelID
		}
		x := m.find(ref, now)
		s, _ := m.standing(ref, x, now)
		t := transition(s, op)
		if results[i] = x.refuse("cancel", ref, t, now); results[i] != nil {
			continue
		}
		switch t.Next {
		case toGone:
			m.remove(x)
		case toFinished:
			m.end(x, engine.Cancelled, ref.By, instant(now.UnixMilli()), now)
		}
	}
	return results, nil
}

// refuse returns the error of a refused transition, or of a state that ref does not allow.
func (x *modelMessage) refuse(op string, ref engine.Ref, t Transition, now time.Time) error {
	if t.Err() != engine.ErrNotFound {
		if err := engine.RefuseState(op, ref, x.info(now).State); err != nil {
			return err
		}
	}
	return fail(op, ref, t)
}

// Reschedule moves the due time of a message.
func (m *Model) Reschedule(ctx context.Context, ref engine.Ref, due engine.When) (engine.Info, error) {
	now, err := m.begin(ctx, "reschedule")
	if err != nil {
		return engine.Info{}, err
	}
	defer m.mu.Unlock()
	x := m.find(ref, now)
	s, _ := m.standing(ref, x, now)
	t := transition(s, opReschedule)
	if err := x.refuse("reschedule", ref, t, now); err != nil {
		return engine.Info{}, err
	}
	forever := x.Expires.IsZero() // a redriven message has no expiry to move
	x.lapse(now)
	x.wait()
	x.setDue(instant(due.Resolve(now)))
	if forever {
		x.Expires = time.Time{}
	}
	x.count(t.Attempt)
	x.vague = true
	m.hint(x.Queue)
	return x.info(now), nil
}

// Get looks a message up.
func (m *Model) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	now, err := m.begin(ctx, "get")
	if err != nil {
		return engine.Info{}, err
	}
	defer m.mu.Unlock()
	op := opGetKey
	if ref.ID != 0 {
		op = opGetID
	}
	x := m.find(ref, now)
	s, gone := m.standing(ref, x, now)
	if gone != nil {
		ref = engine.Ref{Queue: ref.Queue, ID: gone.id}
	}
	if i := m.pastOf(ref, now); i != nil {
		switch {
		case gone != nil:
			i.Forgotten = gone.forgotten
			return *i, nil
		case s == absent, shownAs[s] == engine.Dead && !i.Ended.Before(x.info(now).Died):
			return *i, nil
		}
	}
	if err := fail("get", ref, transition(s, op)); err != nil {
		return engine.Info{}, err
	}
	if gone != nil {
		return gone.info(), nil
	}
	return x.info(now), nil
}

var listOrder = map[engine.State]func(a, b engine.Info) int{
	engine.Scheduled: byDue, engine.Ready: byDue, engine.Leased: byDeadline, engine.Dead: byDeath, engine.Finished: byEnd,
}

// in returns the messages of a queue in one state, in list order.
func (m *Model) in(queue string, state engine.State, now time.Time) []engine.Info {
	var all []engine.Info
	if state == engine.Finished {
		all = m.history(queue, now)
	}
	for _, x := range m.msgs {
		if i := x.info(now); x.Queue == queue && i.State == state {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, listOrder[state])
	return all
}

// endOf returns the time by which lists of a state are ordered.
func endOf(i engine.Info) time.Time {
	switch i.State {
	case engine.Leased:
		return i.Deadline
	case engine.Dead:
		return i.Died
	case engine.Finished:
		return i.Ended
	}
	return i.Due
}

// order returns the order of the list that q asks for.
func order(q *engine.ListQuery) func(a, b engine.Info) int {
	forward := listOrder[q.State]
	if q.Newest {
		return func(a, b engine.Info) int { return forward(b, a) }
	}
	return forward
}

// listed returns the whole list that q asks for, from its start.
func (m *Model) listed(q *engine.ListQuery, now time.Time) []engine.Info {
	all := slices.DeleteFunc(m.in(q.Queue, q.State, now), func(i engine.Info) bool {
		end := endOf(i)
		return end.Before(q.From) || !q.To.IsZero() && !end.Before(q.To)
	})
	slices.SortFunc(all, order(q))
	return all
}

// modelCursor is the message after which a list continues.
type modelCursor struct {
	State  engine.State
	Newest bool
	Last   engine.Info
}

// List lists messages. Its cursor is the last message.
func (m *Model) List(ctx context.Context, q engine.ListQuery) (engine.Page, error) {
	now, err := m.begin(ctx, "list")
	if err != nil {
		return engine.Page{}, err
	}
	defer m.mu.Unlock()
	if err := q.Check(); err != nil {
		return engine.Page{}, err
	}
	after := modelCursor{State: q.State, Newest: q.Newest}
	if q.After != "" {
		err = json.Unmarshal([]byte(q.After), &after)
	}
	if err != nil || after.State != q.State || after.Newest != q.Newest {
		return engine.Page{}, &engine.Error{Op: "list", Queue: q.Queue, Hint: "after must be the next of an earlier page, with the same state and order", Err: engine.ErrInvalid}
	}
	order := order(&q)
	var page engine.Page
	bytes := 0
	for _, i := range m.listed(&q, now) {
		if q.After != "" && order(i, after.Last) <= 0 {
			continue
		}
		if len(page.Messages) == q.Limit || bytes >= engine.AnswerBytes {
			last := page.Messages[len(page.Messages)-1]
			cursor, err := json.Marshal(modelCursor{q.State, q.Newest, engine.Info{ID: last.ID, Due: last.Due, Deadline: last.Deadline, Died: last.Died, Ended: last.Ended}})
			page.Next = string(cursor)
			return page, err
		}
		if !q.Body {
			i.Body = nil
		}
		page.Messages = append(page.Messages, i)
		bytes += len(i.Body)
	}
	return page, nil
}

// Queue returns what one queue holds.
func (m *Model) Queue(ctx context.Context, queue string) (engine.QueueInfo, error) {
	now, err := m.begin(ctx, "queue")
	if err != nil {
		return engine.QueueInfo{}, err
	}
	defer m.mu.Unlock()
	return m.queue(queue, now), nil
}

func (m *Model) queue(queue string, now time.Time) engine.QueueInfo {
	q := engine.QueueInfo{Queue: queue}
	waiting, due := m.in(queue, engine.Scheduled, now), m.in(queue, engine.Ready, now)
	q.Scheduled, q.Ready = int64(len(waiting)), int64(len(due))
	q.Leased, q.Dead = int64(len(m.in(queue, engine.Leased, now))), int64(len(m.in(queue, engine.Dead, now)))
	if len(waiting) > 0 {
		q.NextDue = waiting[0].Due
	}
	if len(due) > 0 {
		q.OldestReady = due[0].Due
	}
	for _, y := range m.memories {
		if y.queue == queue {
			q.Finished++
		}
	}
	q.History = int64(len(m.history(queue, now)))
	if until, ok := m.paused(queue, now); ok {
		q.Paused = true
		if until != forGood {
			q.PausedUntil = until
		}
	}
	return q
}

// Queues lists the queues that hold messages, are paused or have settings.
func (m *Model) Queues(ctx context.Context, after string, limit int) ([]engine.QueueInfo, string, error) {
	now, err := m.begin(ctx, "queues")
	if err != nil {
		return nil, "", err
	}
	defer m.mu.Unlock()
	var page []engine.QueueInfo
	for _, name := range m.knownQueues(now) {
		if name <= after {
			continue
		}
		if len(page) == limit {
			return page, page[limit-1].Queue, nil
		}
		page = append(page, m.queue(name, now))
	}
	return page, "", nil
}

// Forecast counts scheduled and ready messages by due time.
func (m *Model) Forecast(ctx context.Context, queue string, step, span time.Duration) (engine.Forecast, error) {
	now, err := m.begin(ctx, "forecast")
	if err != nil {
		return engine.Forecast{}, err
	}
	defer m.mu.Unlock()
	if step < time.Minute || step%time.Minute != 0 || span < step || span%step != 0 || span/step > 10_000 {
		return engine.Forecast{}, &engine.Error{Op: "forecast", Queue: queue, Hint: "step is whole minutes, span whole steps, at most 10,000", Err: engine.ErrInvalid}
	}
	f := engine.Forecast{Buckets: make([]engine.Bucket, span/step)}
	for i := range f.Buckets {
		f.Buckets[i].From = now.UTC().Truncate(time.Minute).Add(time.Duration(i) * step)
	}
	for _, x := range append(m.in(queue, engine.Scheduled, now), m.in(queue, engine.Ready, now)...) {
		switch d := x.Due.Sub(f.Buckets[0].From); {
		case d < 0:
			f.Overdue++
		case d < span:
			f.Buckets[d/step].Count++
		}
	}
	return f, nil
}

// Pause stops leasing and claiming from a queue.
func (m *Model) Pause(ctx context.Context, queue string, d time.Duration) error {
	now, err := m.begin(ctx, "pause")
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.pauses[queue] = forGood
	if d > 0 {
		m.pauses[queue] = instant(engine.When{In: d}.Resolve(now))
	}
	m.hint(queue) // a shorter pause than before ends sooner
	return nil
}

// Resume ends a pause.
func (m *Model) Resume(ctx context.Context, queue string) error {
	if _, err := m.begin(ctx, "resume"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	delete(m.pauses, queue)
	m.hint(queue)
	return nil
}

// Purge empties a queue.
func (m *Model) Purge(ctx context.Context, queue string, also engine.PurgeAlso) (int64, error) {
	now, err := m.begin(ctx, "purge")
	if err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	ops := []Op{opPurge}
	if also&engine.PurgeDead != 0 {
		ops = append(ops, opPurgeDead)
	}
	if also&engine.PurgeFinished != 0 {
		ops = append(ops, opPurgeFinished)
	}
	before := len(m.msgs) + len(m.memories)
	if also&engine.PurgeFinished != 0 {
		before += len(m.history(queue, now))
		m.past = slices.DeleteFunc(m.past, func(y *past) bool {
			y.gone = y.gone || y.Queue == queue
			return y.Queue == queue && !y.unmet
		})
	}
	for _, op := range ops {
		m.msgs = slices.DeleteFunc(m.msgs, func(x *modelMessage) bool {
			return x.Queue == queue && transition(x.situation(now), op).Next == toGone
		})
		m.memories = slices.DeleteFunc(m.memories, func(y *memory) bool {
			return y.queue == queue && transition(finished, op).Next == toFree
		})
	}
	return int64(before - len(m.msgs) - len(m.memories)), nil
}

// Redrive makes dead messages ready.
func (m *Model) Redrive(ctx context.Context, queue string, ids []engine.ID, limit int) (engine.Redriven, error) {
	now, err := m.begin(ctx, "redrive")
	if err != nil {
		return engine.Redriven{}, err
	}
	defer m.mu.Unlock()
	if len(ids) == 0 {
		for _, i := range m.in(queue, engine.Dead, now) {
			if limit > 0 && len(ids) == limit {
				break
			}
			ids = append(ids, i.ID)
		}
	}
	var r engine.Redriven
	for _, id := range ids {
		var x *modelMessage
		if id != 0 {
			x = m.find(engine.Ref{Queue: queue, ID: id}, now)
		}
		t := transition(x.situation(now), opRedrive)
		if t.Next != toReady || m.live(x.Queue, x.Key, now) != nil {
			r.Skipped++
			continue
		}
		x.lapse(now)
		m.forget(x.Queue, x.Key)
		x.wait()
		x.Due, x.Expires, x.Died = instant(now.UnixMilli()), time.Time{}, time.Time{}
		x.count(t.Attempt)
		r.Redriven++
		m.hint(queue)
	}
	return r, nil
}
