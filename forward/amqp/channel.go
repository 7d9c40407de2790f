package amqp

import (
	"context"
	"errors"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// channel is a channel in confirm mode. Its goroutine gets returns and confirms in the
// order in which the broker sent them, as both pass without a buffer: a message that was
// returned is known to be when its confirm comes.
type channel struct {
	ch   *amqp.Channel
	turn chan struct{} // held to publish
	done chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	closed  error               // why nothing more is published; nil: it is open
	pending map[uint64]*publish // by delivery tag
}

// publish is a message under way.
type publish struct {
	msg      *amqp.Publishing
	returned *amqp.Return
	fate     chan error // gets one
}

// Why the broker has a message not, although the channel is well.
var errNacked = errors.New("the broker refused it (nack)")

// errUnroutable is what the broker says of a message that it returned.
type errUnroutable struct{ amqp.Return }

func (e *errUnroutable) Error() string { return e.ReplyText }

// errClosed is that the channel, or the connection, was closed.
type errClosed struct{ error }

func (e *errClosed) Unwrap() error { return e.error }

// open opens a channel.
func open(conn *amqp.Connection) (*channel, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, &errClosed{err}
	}
	c := &channel{ch: ch, turn: make(chan struct{}, 1), done: make(chan struct{}), pending: make(map[uint64]*publish)}
	closes := ch.NotifyClose(make(chan *amqp.Error, 1))
	returns := ch.NotifyReturn(make(chan amqp.Return))
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation))
	if err := ch.Confirm(false); err != nil {
		_ = ch.Close() // or it is closed
		return nil, &errClosed{err}
	}
	go c.listen(closes, returns, confirms)
	return c, nil
}

func (c *channel) listen(closes chan *amqp.Error, returns chan amqp.Return, confirms chan amqp.Confirmation) {
	defer close(c.done)
	for returns != nil || confirms != nil {
		select {
		case r, ok := <-returns:
			if !ok {
				returns = nil
				continue
			}
			c.returned(&r)
		case confirm, ok := <-confirms:
			if !ok {
				confirms = nil
				continue
			}
			c.confirmed(confirm)
		}
	}
	var why error = amqp.ErrClosed
	if e := <-closes; e != nil {
		why = e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = &errClosed{why}
	for _, p := range c.pending {
		p.fate <- c.closed
	}
	c.pending = nil
}

// returned notes that no queue has taken a message. Its id is that of a message of tarry,
// which may be under way twice: neither has been taken then.
func (c *channel) returned(r *amqp.Return) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pending {
		if p.msg.MessageId == r.MessageId {
			p.returned = r
		}
	}
}

func (c *channel) confirmed(confirm amqp.Confirmation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[confirm.DeliveryTag]
	if p == nil {
		return // who sent it has left
	}
	delete(c.pending, confirm.DeliveryTag)
	switch {
	case p.returned != nil:
		p.fate <- &errUnroutable{*p.returned}
	case !confirm.Ack:
		p.fate <- errNacked
	default:
		p.fate <- nil
	}
}

// publish publishes a message and waits for the broker's word on it. It fails with an
// *errClosed when the channel is, or was closed meanwhile.
func (c *channel) publish(ctx context.Context, exchange, key string, msg *amqp.Publishing) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	p := &publish{msg: msg, fate: make(chan error, 1)}
	tag := c.ch.GetNextPublishSeqNo()
	err := c.await(tag, p)
	if err == nil {
		if err = c.ch.Publish(exchange, key, true, false, *msg); err != nil {
			c.forget(tag)
			_ = c.ch.Close() // its numbers may be out of step
			err = &errClosed{err}
		}
	}
	<-c.turn
	if err != nil {
		return err
	}
	select {
	case err := <-p.fate:
		return err
	case <-ctx.Done():
		c.forget(tag)
		return ctx.Err()
	}
}

// await makes a publish known before the broker can answer it.
func (c *channel) await(tag uint64, p *publish) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return c.closed
	}
	c.pending[tag] = p
	return nil
}

func (c *channel) forget(tag uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, tag)
}

// close closes the channel and waits for its goroutine.
func (c *channel) close() {
	_ = c.ch.Close() // or it is closed
	<-c.done
}
