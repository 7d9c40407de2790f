package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tarryhq/tarry"
)

// Order is the body of the messages, whose keys are the orders' ids.
type Order struct {
	ID string `json:"id"`
}

// A shop does two jobs later.
type shop struct {
	unpaid job // cancel the order, unless it is paid
	review job // rate it five stars, unless the customer answers
}

func newShop() *shop {
	options := []tarry.PushOption{
		tarry.OnConflict(tarry.Keep),             // a push repeated after a crash changes nothing,
		tarry.Remember(5 * 365 * 24 * time.Hour), // even when the message is finished
		tarry.MaxAttempts(tarry.MaxMaxAttempts),  // each crash while it is handled is an attempt
	}
	return &shop{
		unpaid: job{topic: tarry.NewTopic[Order]("order.unpaid", options...), delay: 30 * time.Minute},
		review: job{topic: tarry.NewTopic[Order]("order.review", options...), delay: 48 * time.Hour},
	}
}

// A job is done some time after its trigger, unless it is called off first.
type job struct {
	topic           *tarry.Topic[Order]
	delay           time.Duration
	done, calledOff atomic.Int64
}

var errOtherFile = errors.New("the store has the orders of another file; name another --store")

// plan pushes the job of an order, which was triggered at a time.
func (j *job) plan(ctx context.Context, c *tarry.Client, id string, at time.Time) error {
	p, err := j.topic.Push(ctx, c, Order{id}, tarry.Key(id), tarry.At(at.Add(j.delay)))
	switch {
	case err != nil:
		return err
	case !p.Due.Equal(at.Add(j.delay)):
		return errOtherFile
	case p.State == tarry.Finished && p.Ending == tarry.WasAcked: // by an earlier run
		j.done.Add(1)
	case p.State == tarry.Finished:
		j.calledOff.Add(1)
	}
	return nil
}

// callOff cancels the job of an order.
func (j *job) callOff(ctx context.Context, c *tarry.Client, id string) error {
	err := j.topic.Cancel(ctx, c, tarry.ByKey(id))
	switch {
	case err == nil:
		j.calledOff.Add(1)
	case errors.Is(err, tarry.ErrNotFound), errors.Is(err, tarry.ErrLeased):
		return nil // too late, or an earlier run has called it off
	}
	return err
}

// claim does the job of an order when it is due, as a worker would.
func (j *job) claim(ctx context.Context, c *tarry.Client, id string) error {
	err := j.topic.Claim(ctx, c, tarry.ByKey(id), j.do)
	if errors.Is(err, tarry.ErrNotFound) {
		return nil // called off, or done already
	}
	return err
}

// do is the handler of the job. A shop would change the order in its database here, in such
// a way that a repetition after a crash does no harm.
func (j *job) do(context.Context, *tarry.Message[Order]) error {
	j.done.Add(1)
	return nil
}
