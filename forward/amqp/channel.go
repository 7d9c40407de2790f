package amqp

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/internal/rabbit"
)

// channel is a channel in confirm mode. Its goroutine receives returns and confirms in the
// broker's order, since both Go channels are unbuffered. So it sees the return of a message
// before the confirm.
type channel struct {
	ch         *amqp.Channel
	publishing chan struct{} // held to publish
	done       chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	closed  error               // why the channel is closed; nil: open
	pending map[uint64]*publish // by delivery tag
}

// publish is a message in flight.
type publish struct {
	exchange string
	key      string
	msg      *amqp.Publishing
	known    string // what text returns; empty: not called yet
	returned *amqp.Return
	result   chan error // receives one error
}

// errNacked says that the broker refused a message although the channel is open.
var errNacked = errors.New("the broker refused it (nack)")

// errUnroutable is the broker's reason for returning a message.
type errUnroutable struct{ amqp.Return }

func (e *errUnroutable) Error() string { return e.ReplyText }

// errClosed says that the channel or the connection was closed.
type errClosed struct{ error }

func (e *errClosed) Unwrap() error { return e.error }

// open opens a channel.
func open(conn *amqp.Connection) (*channel, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, &errClosed{err}
	}
	c := &channel{ch: ch, publishing: make(chan struct{}, 1), done: make(chan struct{}), pending: make(map[uint64]*publish)}
	closes := ch.NotifyClose(make(chan *amqp.Error, 1))
	returns := ch.NotifyReturn(make(chan amqp.Return))
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation))
	if err := ch.Confirm(false); err != nil {
		_ = ch.Close() // it may be closed already
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
		p.result <- c.closed
	}
	c.pending = nil
}

// returned records that no queue took a message. A return does not say which publish it is
// of. Equal messages in flight are routed alike, so no queue takes any of them.
func (c *channel) returned(r *amqp.Return) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, text := false, returnedText(r)
	for _, p := range c.pending {
		if p.exchange == r.Exchange && p.text() == text && bytes.Equal(p.msg.Body, r.Body) {
			p.returned, found = r, true
		}
	}
	if found {
		return
	}
	// The broker has changed it: rather send another one twice than lose it.
	for _, p := range c.pending {
		if p.exchange == r.Exchange && p.key == r.RoutingKey && p.msg.MessageId == r.MessageId {
			p.returned = r
		}
	}
}

// text is what decides on the way of a message, but for its exchange.
func (p *publish) text() string {
	if p.known != "" {
		return p.known
	}
	e := rabbit.Envelope{Key: p.key, Properties: *p.msg}
	if _, has := e.Properties.Headers["BCC"]; has { // the broker removes it
		e.Properties.Headers = maps.Clone(e.Properties.Headers)
		delete(e.Properties.Headers, "BCC")
	}
	p.known = e.Text()
	return p.known
}

func returnedText(r *amqp.Return) string {
	p := publish{key: r.RoutingKey, msg: &amqp.Publishing{
		Headers: r.Headers, ContentType: r.ContentType, ContentEncoding: r.ContentEncoding, Priority: r.Priority,
		CorrelationId: r.CorrelationId, ReplyTo: r.ReplyTo, Expiration: r.Expiration, MessageId: r.MessageId,
		Timestamp: r.Timestamp, Type: r.Type, UserId: r.UserId, AppId: r.AppId,
	}}
	return p.text()
}

func (c *channel) confirmed(confirm amqp.Confirmation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[confirm.DeliveryTag]
	if p == nil {
		return // its Send has ended
	}
	delete(c.pending, confirm.DeliveryTag)
	switch {
	case p.returned != nil:
		p.result <- &errUnroutable{*p.returned}
	case !confirm.Ack:
		p.result <- errNacked
	default:
		p.result <- nil
	}
}

// publish publishes a message and waits for the confirm. It fails with an *errClosed if the
// channel is closed first.
func (c *channel) publish(ctx context.Context, exchange, key string, msg *amqp.Publishing) error {
	select {
	case c.publishing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	p := &publish{exchange: exchange, key: key, msg: msg, result: make(chan error, 1)}
	tag := c.ch.GetNextPublishSeqNo()
	err := c.register(tag, p)
	if err == nil {
		if err = c.ch.Publish(exchange, key, true, false, *msg); err != nil {
			c.forget(tag)
			_ = c.ch.Close() // its delivery tags may be wrong
			err = &errClosed{err}
		}
	}
	<-c.publishing
	if err != nil {
		return err
	}
	select {
	case err := <-p.result:
		return err
	case <-ctx.Done():
		c.forget(tag)
		return ctx.Err()
	}
}

// register registers a publish before the broker can answer it.
func (c *channel) register(tag uint64, p *publish) error {
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
	_ = c.ch.Close() // it may be closed already
	<-c.done
}
