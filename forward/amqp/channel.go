package amqp

import (
	"context"
	"errors"
	"reflect"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// channel is a channel in confirm mode. Its goroutine receives returns.
type channel struct {
	ch     *amqp.Channel
	done   chan struct{} // closed when the goroutine has ended
	closed error         // why the channel is closed; set before done is closed

	mu      sync.Mutex
	pending map[*publish]struct{}
}

// publish is a message in flight.
type publish struct {
	exchange string
	key      string
	msg      *amqp.Publishing
	returned *amqp.Return
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
	c := &channel{ch: ch, done: make(chan struct{}), pending: make(map[*publish]struct{})}
	closes := ch.NotifyClose(make(chan *amqp.Error, 1))
	returns, seen := ch.NotifyReturn(make(chan amqp.Return)), ch.NotifyReturn(make(chan amqp.Return))
	if err := ch.Confirm(false); err != nil {
		_ = ch.Close() // it may be closed already
		return nil, &errClosed{err}
	}
	go c.listen(closes, returns, seen)
	return c, nil
}

// listen receives each return twice. The client goes on to the confirm of the message once it
// has sent to seen, and that is after the return was recorded.
func (c *channel) listen(closes chan *amqp.Error, returns, seen chan amqp.Return) {
	defer close(c.done)
	for open := true; open; {
		select {
		case r, more := <-returns:
			if open = more; open {
				c.returned(&r)
			}
		case <-seen:
		}
	}
	c.closed = &errClosed{amqp.ErrClosed}
	if e := <-closes; e != nil {
		c.closed = &errClosed{e}
	}
}

// returned records that no queue took a message. A return does not say which publish it is
// of, but messages in flight that are routed alike are taken by no queue either. If the broker
// has changed the message so that none is found, it is any with this key and id: rather send
// another one twice than lose it.
func (c *channel) returned(r *amqp.Return) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := false
	for _, loosely := range []bool{false, true} {
		for p := range c.pending {
			if p.exchange == r.Exchange && p.key == r.RoutingKey && p.msg.MessageId == r.MessageId && (loosely || p.within(r.Headers)) {
				p.returned, found = r, true
			}
		}
		if found {
			return
		}
	}
}

// within reports whether a returned message has all headers of this one but BCC, which the
// broker removes. What is not routed by more headers is not routed by fewer.
func (p *publish) within(returned amqp.Table) bool {
	for name, v := range p.msg.Headers {
		if name != "BCC" && !reflect.DeepEqual(v, returned[name]) {
			return false
		}
	}
	return true
}

// publish publishes a message and waits for the confirm. It fails with an *errClosed if the
// channel is closed first.
func (c *channel) publish(ctx context.Context, exchange, key string, msg *amqp.Publishing) error {
	p := &publish{exchange: exchange, key: key, msg: msg}
	c.mu.Lock()
	c.pending[p] = struct{}{} // before the broker can return it
	c.mu.Unlock()
	defer c.forget(p)
	confirm, err := c.ch.PublishWithDeferredConfirm(exchange, key, true, false, *msg)
	if err != nil {
		_ = c.ch.Close() // its delivery tags may be wrong
		return &errClosed{err}
	}
	select {
	case <-confirm.Done():
		return c.result(p, confirm.Acked())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// result returns what became of a message. The client has all in flight fail when the channel
// is closed.
func (c *channel) result(p *publish, acked bool) error {
	if !acked && c.ch.IsClosed() {
		<-c.done
		return c.closed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case p.returned != nil:
		return &errUnroutable{*p.returned}
	case !acked:
		return errNacked
	}
	return nil
}

func (c *channel) forget(p *publish) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, p)
}

// close closes the channel and waits for its goroutine.
func (c *channel) close() {
	_ = c.ch.Close() // it may be closed already
	<-c.done
}
