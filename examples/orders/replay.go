package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tarryhq/tarry"
)

// A replay applies the events of a file to a client whose engine runs on the
// clock. It is a loop of three steps (see run), and what makes it quick is that
// each takes many at once:
//
//   - push: messages are pushed for a stretch of events ahead. Their due times come
//     from the file, so pushing early changes nothing but the number of syncs.
//   - call off: all call-offs up to the next due time go in one call.
//   - handle: what is due is leased and handled, but acked later with others, after
//     their outcomes are recorded together; the clock never passes the end of a
//     lease that is still held.
type replay struct {
	client  *tarry.Client
	clock   *clock
	journal *journal
	orders  []order
	events  []event
	rows    map[string]int // by order id

	ended  outcomes
	done   int       // events applied
	pushed int       // events whose messages are pushed: done, and a stretch ahead
	doubt  int       // events below may have been applied by a run that crashed
	next   time.Time // nothing is due before; zero: nothing is pending
	news   record    // what the journal does not have yet
	since  int       // events applied when the journal was last written
	held   []tarry.Lease

	// after, if not nil, is told of each step that changed something outside this
	// process's memory. An error ends the replay there.
	after func(step string) error
}

const (
	stretch  = 500 // events whose messages are pushed in one call
	perWrite = 256 // events, and held leases, at most between two records
	perLease = 100 // messages
)

// newReplay prepares a replay that goes on behind the records.
func newReplay(c *tarry.Client, clk *clock, j *journal, orders []order, records []record) (*replay, error) {
	r := &replay{
		client: c, clock: clk, journal: j, orders: orders,
		events: timeline(orders), rows: make(map[string]int, len(orders)), ended: newOutcomes(len(orders)),
	}
	for row, o := range orders {
		r.rows[o.id] = row
	}
	for _, rec := range records {
		if rec.Events < r.done || rec.Events > len(r.events) {
			return nil, errors.New("the log of the store does not fit the file; remove the store and replay again")
		}
		r.done = rec.Events
		for j := range jobs {
			for _, id := range rec.Handled[j] {
				r.ended[j][r.rows[id]] = handled
			}
			for _, id := range rec.CalledOff[j] {
				r.ended[j][r.rows[id]] = calledOff
			}
		}
	}
	r.pushed, r.since, r.news.Events = r.done, r.done, r.done
	r.doubt = r.done + perWrite
	return r, nil
}

// run replays what is left. When it fails, another run on the same store goes on.
func (r *replay) run(ctx context.Context) error {
	if len(r.events) == 0 {
		return nil
	}
	r.clock.set(r.events[max(r.done-1, 0)].at)
	if err := r.handle(ctx); err != nil { // a run before may have left messages
		return err
	}
	for {
		var err error
		switch end := r.reach(); {
		case r.done == r.pushed && r.done < len(r.events):
			err = r.push(ctx)
		case end > r.done:
			err = r.callOff(ctx, end)
		case r.next.IsZero():
			return r.finish(ctx)
		default:
			if err = r.advance(ctx, r.next); err == nil {
				err = r.handle(ctx)
			}
		}
		if err != nil {
			return err
		}
	}
}

// reach returns the end of the events that come next: those pushed for and not
// later than the next due time.
func (r *replay) reach() int {
	end := r.done
	for end < r.pushed && end-r.since < perWrite && (r.next.IsZero() || !r.events[end].at.After(r.next)) {
		end++
	}
	return end
}

// push pushes the messages of the next stretch of events.
func (r *replay) push(ctx context.Context) error {
	end := min(r.done+stretch, len(r.events))
	var msgs []tarry.Draft
	for _, e := range r.events[r.done:end] {
		if e.callOff {
			continue
		}
		id := r.orders[e.row].id
		m, err := topics[e.job].Draft(Order{id}, tarry.Key(id), tarry.At(r.due(e.job, e.row)))
		if err != nil {
			return err
		}
		msgs = append(msgs, m)
	}
	r.pushed = end
	pushed, err := r.client.PushMany(ctx, msgs)
	if err != nil {
		return err
	}
	for _, p := range pushed {
		if p.Err != nil {
			return p.Err
		}
		r.expect(p.Due)
	}
	return r.step("push")
}

// due returns when a job is due whose reason has happened.
func (r *replay) due(j job, row int) time.Time {
	reason := r.orders[row].purchased
	if j == rateReview {
		reason = r.orders[row].asked
	}
	return reason.Add(delays[j])
}

// expect notes that something may be due at t, if that is not zero.
func (r *replay) expect(t time.Time) {
	if !t.IsZero() && (r.next.IsZero() || t.Before(r.next)) {
		r.next = t
	}
}

// callOff applies the events up to end; the messages of their reasons are pushed.
func (r *replay) callOff(ctx context.Context, end int) error {
	if err := r.advance(ctx, r.events[end-1].at); err != nil {
		return err
	}
	var refs []tarry.Ref
	var at []int // event of each ref
	for i, e := range r.events[r.done:end] {
		if e.callOff {
			refs = append(refs, tarry.ByKey(r.orders[e.row].id).Of(topics[e.job].Queue()))
			at = append(at, r.done+i)
		}
	}
	cancelled, err := r.client.CancelMany(ctx, refs)
	if err != nil {
		return err
	}
	for i, c := range cancelled {
		if err := r.answered(at[i], c.Err); err != nil {
			return err
		}
	}
	r.done = end
	if err := r.step("call off"); err != nil {
		return err
	}
	if r.done-r.since >= perWrite {
		return r.write(ctx)
	}
	return nil
}

// answered takes the answer to the call-off that is event i.
func (r *replay) answered(i int, err error) error {
	e := r.events[i]
	switch {
	case err == nil:
		return r.end(e.job, e.row, calledOff)
	case errors.Is(err, tarry.ErrLeased):
		return nil // too late: handled, and soon acked
	case !errors.Is(err, tarry.ErrNotFound):
		return err
	case r.ended[e.job][e.row] != open:
		return nil // too late: handled and acked; or called off before a crash
	case i < r.doubt && !e.at.After(r.due(e.job, e.row)):
		// What was handled is recorded before it is acked. So it was called off, by
		// a run that crashed before it could record that.
		return r.end(e.job, e.row, calledOff)
	}
	return fmt.Errorf("order %q: its message in %s is gone, though nobody took it", r.orders[e.row].id, topics[e.job].Queue())
}

// wants asks for a batch of each queue.
var wants = []tarry.Want{
	{Queue: topics[cancelUnpaid].Queue(), Max: perLease},
	{Queue: topics[rateReview].Queue(), Max: perLease},
}

// handle leases and handles what is due, and learns when something will be again.
func (r *replay) handle(ctx context.Context) error {
	for more := true; more; {
		grant, err := r.client.LeaseNow(ctx, wants)
		if err != nil {
			return err
		}
		more, r.next = false, time.Time{}
		if err := r.step("lease"); err != nil {
			return err
		}
		for _, got := range grant.Queues {
			if got.Err != nil {
				return got.Err
			}
			for _, l := range got.Messages {
				if err := r.handleOne(l); err != nil {
					return err
				}
			}
			more = more || got.More
			r.expect(got.NextDue)
		}
		if now := r.clock.now(); !more && !r.next.IsZero() && !r.next.After(now) {
			return fmt.Errorf("the engine hands out nothing at %s, and says that something is due at %s", now, r.next)
		}
		if len(r.held) >= perWrite {
			if err := r.write(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// handleOne does what the message says: here that is to note the outcome.
func (r *replay) handleOne(l tarry.Lease) error {
	j := cancelUnpaid
	if l.Queue == topics[rateReview].Queue() {
		j = rateReview
	}
	o, err := topics[j].Value(l.Info)
	if err != nil {
		return err
	}
	row, ok := r.rows[o.ID]
	if !ok {
		return fmt.Errorf("the store holds a message of order %q, which is not in the file", o.ID)
	}
	if now := r.clock.now(); l.Due.After(now) {
		return fmt.Errorf("order %q: its message in %s came at %s, before it was due at %s", o.ID, l.Queue, now, l.Due)
	}
	r.held = append(r.held, l)
	return r.end(j, row, handled)
}

// end notes the outcome of a job, once.
func (r *replay) end(j job, row int, o outcome) error {
	id := r.orders[row].id
	switch was := r.ended[j][row]; {
	case was == o:
		return nil // repeated after a crash
	case was != open:
		return fmt.Errorf("order %q: its message in %s was both handled and called off", id, topics[j].Queue())
	}
	r.ended[j][row] = o
	if o == handled {
		r.news.Handled[j] = append(r.news.Handled[j], id)
	} else {
		r.news.CalledOff[j] = append(r.news.CalledOff[j], id)
	}
	return nil
}

// advance sets the clock to t, having acked what is held before its lease ends.
func (r *replay) advance(ctx context.Context, t time.Time) error {
	over := func(l tarry.Lease) bool { return !t.Before(l.Deadline) }
	if slices.ContainsFunc(r.held, over) {
		if err := r.write(ctx); err != nil {
			return err
		}
	}
	r.clock.set(t)
	return nil
}

// write records what happened since the last record, and then acks what was
// handled.
func (r *replay) write(ctx context.Context) error {
	if r.done > r.since || r.news.ended() > 0 {
		r.news.Events = r.done
		if err := r.journal.append(&r.news); err != nil {
			return fmt.Errorf("the log of the replay cannot be written: %w", err)
		}
		r.news, r.since = record{}, r.done
		if err := r.step("record"); err != nil {
			return err
		}
	}
	if len(r.held) == 0 {
		return nil
	}
	acks := make([]tarry.Settlement, len(r.held))
	for i, l := range r.held {
		acks[i] = tarry.Settlement{Token: l.Token, Do: tarry.DoAck}
	}
	settled, err := r.client.Settle(ctx, acks)
	if err != nil {
		return err
	}
	for _, s := range settled {
		if s.Err != nil {
			return s.Err
		}
	}
	r.held = r.held[:0]
	return r.step("ack")
}

// finish records the rest and looks whether every job has ended.
func (r *replay) finish(ctx context.Context) error {
	if err := r.write(ctx); err != nil {
		return err
	}
	for _, e := range r.events {
		if r.ended[e.job][e.row] == open {
			return fmt.Errorf("order %q: its message in %s was lost", r.orders[e.row].id, topics[e.job].Queue())
		}
	}
	return nil
}

func (r *replay) step(name string) error {
	if r.after == nil {
		return nil
	}
	return r.after(name)
}
