package amqp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward/internal/link"
	"github.com/tarryhq/tarry/internal/rabbit"
)

// connection is a connection to a broker, with its channels.
type connection struct {
	amqp     *amqp.Connection
	shared   *link.Link[*channel] // of all Sends: with more channels the broker works more
	watchers sync.WaitGroup

	mu      sync.Mutex
	blocked chan struct{} // closed when the broker accepts messages again; nil: it accepts them
	reason  string        // why the broker blocks publishers
}

// dial connects to a broker.
func (t *Target) dial(ctx context.Context) (*connection, error) {
	c, err := t.broker.Dial(ctx)
	if err != nil {
		return nil, t.fault(err, t.cfg.Exchange)
	}
	return t.newConnection(c), nil
}

func (t *Target) newConnection(a *amqp.Connection) *connection {
	c := &connection{amqp: a}
	c.shared = link.New(t.opts.Timeout, func(context.Context) (*channel, error) { return open(a) }, (*channel).close)
	blocks := a.NotifyBlocked(make(chan amqp.Blocking, 1))
	c.watchers.Go(func() {
		for b := range blocks {
			c.setBlocked(b)
		}
		c.setBlocked(amqp.Blocking{})
	})
	closes := a.NotifyClose(make(chan *amqp.Error, 1))
	c.watchers.Go(func() {
		if err := <-closes; err != nil {
			t.opts.Logger.Warn("tarry: lost the connection to RabbitMQ", "broker", strings.Join(t.cfg.Addrs, ", "), "error", err)
			t.link.GiveUp(c)
		}
	})
	return c
}

func (c *connection) hangUp() {
	rabbit.HangUp(c.amqp)
	_ = c.shared.Close() // never fails
	c.watchers.Wait()
}

// setBlocked records whether and why the broker blocks publishers.
func (c *connection) setBlocked(b amqp.Blocking) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case b.Active && c.blocked == nil:
		c.blocked = make(chan struct{})
	case !b.Active && c.blocked != nil:
		close(c.blocked)
		c.blocked = nil
	}
	c.reason = b.Reason
}

// awaitUnblocked waits until the broker accepts messages.
func (c *connection) awaitUnblocked(ctx context.Context) error {
	c.mu.Lock()
	blocked, reason := c.blocked, c.reason
	c.mu.Unlock()
	if blocked == nil {
		return nil
	}
	select {
	case <-blocked:
		return nil
	case <-ctx.Done():
		return &errBlocked{ctx.Err(), reason}
	}
}

// errBlocked says that a broker accepts no messages.
type errBlocked struct {
	error
	reason string
}

func (e *errBlocked) Error() string {
	return fmt.Sprintf("%v (%s): %v", rabbit.ErrBlocked, e.reason, e.error)
}

func (e *errBlocked) Unwrap() []error { return []error{e.error, rabbit.ErrBlocked} }

// ownChannelSize is the size above which a message gets its own channel. If the broker finds
// a message too large, it closes the channel with everything in flight on it.
const ownChannelSize = 1 << 20

// publish publishes on the shared channel. If the channel was closed, perhaps because of another
// message, it tries once more on a channel for this message alone.
func (c *connection) publish(ctx context.Context, exchange, key string, msg *amqp.Publishing) error {
	if err := c.awaitUnblocked(ctx); err != nil {
		return err
	}
	if len(msg.Body) > ownChannelSize {
		return c.publishAlone(ctx, exchange, key, msg)
	}
	err := c.shared.Use(ctx, func(ctx context.Context, ch *channel) error {
		err := ch.publish(ctx, exchange, key, msg)
		if isClosed(err) {
			c.shared.GiveUp(ch)
		}
		return err
	})
	if errors.Is(err, tarry.ErrClosed) {
		err = &errClosed{amqp.ErrClosed} // the connection was given up
	}
	switch {
	case !isClosed(err) || rabbit.HasCode(err, amqp.NotFound) && strings.Contains(err.Error(), "'"+exchange+"'"):
		return err
	case ctx.Err() != nil: // another message may have closed the channel
		return ctx.Err()
	case c.amqp.IsClosed():
		if rabbit.HasCode(err, amqp.PreconditionFailed) {
			err = &errClosed{amqp.ErrClosed} // the connection is closed, too
		}
		return err
	}
	return c.publishAlone(ctx, exchange, key, msg)
}

// publishAlone publishes on a channel that it opens for this message.
func (c *connection) publishAlone(ctx context.Context, exchange, key string, msg *amqp.Publishing) error {
	ch, err := open(c.amqp)
	if err != nil {
		return err
	}
	defer func() { go ch.close() }() // closing blocks while the broker blocks
	return ch.publish(ctx, exchange, key, msg)
}

func isClosed(err error) bool {
	_, ok := errors.AsType[*errClosed](err)
	return ok
}
