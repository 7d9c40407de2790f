package amqp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward/internal/link"
)

const (
	sharedChannels = 8 // shared by Sends
	heartbeat      = 5 * time.Second
	closeTime      = time.Second // for the broker's answer to a close
)

// connection is a connection to a broker, with its channels.
type connection struct {
	amqp     *amqp.Connection
	links    [sharedChannels]*link.Link[*channel]
	next     atomic.Uint32
	watchers sync.WaitGroup

	mu      sync.Mutex
	blocked chan struct{} // closed when the broker accepts messages again; nil: it accepts them
	reason  string        // why the broker blocks publishers
}

// dial connects to the first broker that answers within its share of the time.
func (t *Target) dial(ctx context.Context) (*connection, error) {
	var err error
	for i, addr := range t.cfg.Addrs {
		var c *amqp.Connection
		if c, err = t.dialOne(ctx, addr, len(t.cfg.Addrs)-i); err == nil {
			return t.newConnection(c), nil
		}
	}
	return nil, t.fault(err)
}

// dialOne connects to a broker. The remaining time is shared by the brokers left to try.
func (t *Target) dialOne(ctx context.Context, addr string, left int) (*amqp.Connection, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if t.cfg.TLS != nil {
		cfg := t.cfg.TLS.Clone()
		if cfg.ServerName == "" {
			cfg.ServerName, _, _ = net.SplitHostPort(addr) // addr was dialed
		}
		secure := tls.Client(raw, cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, err
		}
		raw = secure
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName("tarry")
	c, err := amqp.Open(&writeTimeoutConn{raw, t.opts.Timeout}, amqp.Config{
		SASL:       []amqp.Authentication{&amqp.PlainAuth{Username: t.cfg.User, Password: t.cfg.Password}},
		Vhost:      t.cfg.Vhost,
		Heartbeat:  heartbeat,
		FrameSize:  amqp.FrameSizeUnlimited, // use the broker's
		Locale:     "en_US",
		Properties: properties,
	})
	if !stop() && err == nil {
		_ = c.Close()
		err = ctx.Err()
	}
	if err != nil {
		_ = raw.Close() // it may be closed already
		return nil, err
	}
	return c, nil
}

// writeTimeoutConn is a connection with a timeout on writes: a broker that is low on memory stops
// reading.
type writeTimeoutConn struct {
	net.Conn
	timeout time.Duration
}

func (b *writeTimeoutConn) Write(p []byte) (int, error) {
	if err := b.SetWriteDeadline(time.Now().Add(b.timeout)); err != nil {
		return 0, err
	}
	return b.Conn.Write(p)
}

func (t *Target) newConnection(a *amqp.Connection) *connection {
	c := &connection{amqp: a}
	for i := range c.links {
		c.links[i] = link.New(t.opts.Timeout, func(context.Context) (*channel, error) { return open(a) }, (*channel).close)
	}
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
	_ = c.amqp.CloseDeadline(time.Now().Add(closeTime)) // it may be closed already
	for _, l := range c.links {
		_ = l.Close() // never fails
	}
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
	return fmt.Sprintf("RabbitMQ blocks publishers (%s): %v", e.reason, e.error)
}

func (e *errBlocked) Unwrap() error { return e.error }

// ownChannelSize is the size above which a message gets its own channel. If the broker finds
// a message too large, it closes the channel with everything in flight on it.
const ownChannelSize = 1 << 20

// publish publishes on a shared channel. If the channel was closed, perhaps because of another
// message, it tries once more on a channel for this message alone.
func (c *connection) publish(ctx context.Context, exchange, key string, msg *amqp.Publishing) error {
	if err := c.awaitUnblocked(ctx); err != nil {
		return err
	}
	if len(msg.Body) > ownChannelSize {
		return c.publishAlone(ctx, exchange, key, msg)
	}
	shared := c.links[c.next.Add(1)%sharedChannels]
	err := shared.Send(ctx, func(ctx context.Context, ch *channel) error {
		err := ch.publish(ctx, exchange, key, msg)
		if isClosed(err) {
			shared.GiveUp(ch)
		}
		return err
	})
	if errors.Is(err, tarry.ErrClosed) {
		err = &errClosed{amqp.ErrClosed} // the connection was given up
	}
	switch {
	case !isClosed(err) || hasCode(err, amqp.NotFound):
		return err
	case ctx.Err() != nil: // another message may have closed the channel
		return ctx.Err()
	case c.amqp.IsClosed():
		if hasCode(err, amqp.PreconditionFailed) {
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

// hasCode reports whether the broker closed a channel or connection with this code.
func hasCode(err error, code int) bool {
	e, ok := errors.AsType[*amqp.Error](err)
	return ok && e.Code == code && e.Server
}
