package rabbit

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/internal/storeurl"
)

// MaxShort is how many bytes a name has at most in AMQP.
const MaxShort = 255

const (
	heartbeat = 5 * time.Second
	closeTime = time.Second // for the broker's answer to a close
	mostSpare = 256 << 10   // bytes that a connection keeps to be filled again
)

// Broker says how to connect to a broker, or to one of a cluster.
type Broker struct {
	Addrs          []string // host:port; the first that answers is used
	User, Password string   // default: guest
	Vhost          string   // default: /
	TLS            *tls.Config
}

// Parse reads a broker from a URL of the scheme amqp or amqps. base has what its TLS
// options do not set.
func Parse(r *storeurl.Reader, u *url.URL, base *tls.Config) *Broker {
	b := &Broker{User: u.User.Username(), Vhost: strings.TrimPrefix(u.Path, "/")}
	if r.Password("password_file", &b.Password) && b.User == "" {
		r.Fail("name the user, as in amqp://USER@host:5672/vhost")
	}
	port := "5672"
	if u.Scheme == "amqps" {
		port, b.TLS = "5671", r.TLSOver(base)
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		b.Addrs = append(b.Addrs, storeurl.Address(host, port))
	}
	if u.Opaque != "" || u.Fragment != "" || u.Host == "" {
		r.Fail("an example is amqp://127.0.0.1:5672/vhost?exchange=orders&key=order.due")
	}
	return b
}

// Complete fills in the defaults.
func (b *Broker) Complete() {
	if b.User == "" {
		b.User, b.Password = "guest", "guest"
	}
	b.Vhost = cmp.Or(b.Vhost, "/")
}

// Dial connects to the first broker that answers within its share of the time.
func (b *Broker) Dial(ctx context.Context) (c *amqp.Connection, err error) {
	for i, addr := range b.Addrs {
		if c, err = b.dial(ctx, addr, len(b.Addrs)-i); err == nil {
			return c, nil
		}
	}
	return nil, err
}

// dial connects to a broker. The remaining time is shared by the brokers left to try.
func (b *Broker) dial(ctx context.Context, addr string, left int) (*amqp.Connection, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	d := tls.Dialer{NetDialer: new(net.Dialer), Config: b.TLS}
	dial := d.DialContext
	if b.TLS == nil {
		dial = d.NetDialer.DialContext
	}
	raw, err := dial(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName("tarry")
	c, err := amqp.Open(&conn{Conn: raw}, amqp.Config{
		SASL:       []amqp.Authentication{&amqp.PlainAuth{Username: b.User, Password: b.Password}},
		Vhost:      b.Vhost,
		Heartbeat:  heartbeat,
		FrameSize:  amqp.FrameSizeUnlimited, // use the broker's
		Locale:     "en_US",
		Properties: properties,
	})
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = raw.Close() // it may be closed already
		return nil, err
	}
	return c, nil
}

// HangUp closes a connection, which may be closed already.
func HangUp(c *amqp.Connection) { _ = c.CloseDeadline(time.Now().Add(closeTime)) }

// conn is a connection to a broker. The client writes each message by itself: those that come
// at the same time go in one write. No write waits for a broker that has stopped reading; if
// it is gone, heartbeats tell.
type conn struct {
	net.Conn

	mu      sync.Mutex
	unsent  []byte
	spare   []byte // what was sent, to be filled again
	sending bool
	err     error // the client learns of it by its next write
}

func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	c.unsent = append(c.unsent, p...)
	if !c.sending {
		c.sending = true
		go c.send()
	}
	return len(p), nil
}

// send writes until nothing is left.
func (c *conn) send() {
	runtime.Gosched() // goroutines that are about to write go first
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.unsent) > 0 && c.err == nil {
		b := c.unsent
		c.unsent, c.spare = c.spare[:0], nil
		c.mu.Unlock()
		_, err := c.Conn.Write(b)
		c.mu.Lock()
		if c.err = err; cap(b) <= mostSpare {
			c.spare = b
		}
	}
	c.sending = false
}

// ErrBlocked says that a broker accepts no messages.
var ErrBlocked = errors.New("RabbitMQ blocks publishers")

// HasCode reports whether the broker closed a channel or connection with this code.
func HasCode(err error, code int) bool {
	e, ok := errors.AsType[*amqp.Error](err)
	return ok && e.Code == code && e.Server
}

// OneLine joins the lines of a broker's error.
func OneLine(err error) error {
	if text := err.Error(); strings.ContainsAny(text, "\r\n") {
		return errors.New(strings.Join(strings.Fields(text), " "))
	}
	return err
}
