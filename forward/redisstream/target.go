package redisstream

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/forward"
	"github.com/tarryhq/tarry/forward/internal/link"
	"github.com/tarryhq/tarry/internal/redisurl"
	"github.com/tarryhq/tarry/internal/storeurl"
)

// Config is the destination of entries.
type Config struct {
	// Client configures the connection; InitAddress is required. The default
	// ConnWriteTimeout is the timeout of the options. Client-side caching is off.
	Client rueidis.ClientOption

	// Stream is the stream's key. Default: the name of the message's queue.
	Stream string

	// MaxLen is roughly how many entries the stream keeps. 0: all.
	MaxLen int64
}

// Target adds messages to a stream. It is a forward.Target.
type Target struct {
	cfg  Config
	opts *forward.Options
	link *link.Link[rueidis.Client]
}

// New returns a target without connecting. Options may be nil.
func New(cfg Config, o *forward.Options) (*Target, error) {
	o, err := link.Options(o, "a Redis stream")
	if err != nil {
		return nil, err
	}
	switch {
	case len(cfg.Client.InitAddress) == 0:
		return nil, link.Invalid("no Redis address is given")
	case cfg.MaxLen < 0:
		return nil, link.Invalid("maxlen is negative")
	}
	cfg.Client.DisableCache = true
	cfg.Client.AlwaysPipelining = true // otherwise a call heeds only the deadline, not cancellation
	cfg.Client.ConnWriteTimeout = cmp.Or(cfg.Client.ConnWriteTimeout, o.Timeout)
	t := &Target{cfg: cfg, opts: o}
	t.link = link.New(o.Timeout, t.dial, rueidis.Client.Close)
	return t, nil
}

func (t *Target) dial(context.Context) (rueidis.Client, error) {
	c, err := rueidis.NewClient(t.cfg.Client)
	if err != nil {
		return nil, t.fault(err)
	}
	return c, nil
}

// Send adds a message to the stream.
func (t *Target) Send(ctx context.Context, m *tarry.Message[[]byte]) error {
	return t.link.Send(ctx, func(ctx context.Context, c rueidis.Client) error {
		err := c.Do(ctx, t.xadd(c, m)).Error()
		if err == nil {
			return nil
		}
		if e, ok := rueidis.IsRedisErr(err); ok && strings.HasPrefix(e.Error(), "READONLY") {
			t.link.GiveUp(c)
		}
		if ctx.Err() != nil {
			return link.Fault(ctx.Err(), link.Unknown)
		}
		return t.fault(err)
	})
}

// Close waits for Sends in progress and closes the connection.
func (t *Target) Close() error { return t.link.Close() }

func (t *Target) xadd(c rueidis.Client, m *tarry.Message[[]byte]) rueidis.Completed {
	args := make([]string, 0, 4+2*(2+8+len(m.Headers)))
	if t.cfg.MaxLen > 0 {
		args = append(args, "MAXLEN", "~", strconv.FormatInt(t.cfg.MaxLen, 10))
	}
	// Copied, since the client may still hold its arguments after a cancelled call.
	args = append(args, "*", fieldBody, string(m.Body))
	return c.B().Arbitrary("XADD").Keys(cmp.Or(t.cfg.Stream, m.Queue)).Args(append(args, t.fields(m)...)...).Build()
}

const (
	fieldBody        = "body"
	fieldContentType = "content-type"
)

// fields returns the names and values of an entry after its body.
func (t *Target) fields(m *tarry.Message[[]byte]) []string {
	var fields []string
	if ct := link.ContentType(m, t.opts); ct != "" {
		fields = append(fields, fieldContentType, ct)
	}
	for _, h := range forward.Metadata(m, t.opts) {
		if !strings.EqualFold(h.Name, fieldBody) && !link.IsContentType(h.Name) {
			fields = append(fields, h.Name, h.Value)
		}
	}
	return fields
}

// hints are the hints for errors of Redis, by prefix.
var hints = []struct{ prefix, hint string }{
	{"OOM", "this Redis has reached maxmemory; raise it, or set maxlen"},
	{"READONLY", "this Redis is a read-only replica; use the master's address"},
	{"NOAUTH", "this Redis requires a password; set one in the URL or by password_file"},
	{"WRONGPASS", "check the user and the password of the URL"},
	{"ERR AUTH", "this Redis has no password; leave it out of the URL"},
	{"NOPERM", "the Redis user needs +xadd and the stream's key"},
	{"LOADING", "this Redis is starting"},
	{"MISCONF", "this Redis cannot save to its disk; see its log"},
	{"NOREPLICAS", "too few replicas are in sync (min-replicas-to-write)"},
	{"MOVED", "this Redis is a node of a cluster, and another node has the stream; use that node, or a server without a cluster"},
	{"CLUSTERDOWN", "this Redis is a node of a cluster that is down"},
}

// fault converts the error of a call for Send.
func (t *Target) fault(err error) error {
	e, answered := rueidis.IsRedisErr(err)
	if !answered {
		return link.Fault(err, "check that Redis runs at "+strings.Join(t.cfg.Client.InitAddress, ", ")+"; if the message was already sent, it will be duplicated")
	}
	text := e.Error()
	if strings.HasPrefix(text, "WRONGTYPE") {
		return tarry.Bury(link.Fault(err, "the key is not a stream; choose another"))
	}
	for _, h := range hints {
		if strings.HasPrefix(text, h.prefix) {
			return link.Fault(err, h.hint)
		}
	}
	if strings.Contains(text, "DB index is out of range") {
		return link.Fault(err, "this Redis has no database "+strconv.Itoa(t.cfg.Client.SelectDB))
	}
	return link.Fault(err, "Redis returned this error")
}

var _ forward.Target = (*Target)(nil)

func init() { link.Register(parse, New, "redis", "rediss") }

// parse parses a URL.
func parse(u *url.URL, o *forward.Options) (*Config, error) {
	r := storeurl.New(u)
	cfg := &Config{Client: redisurl.Client(r, u, o.TLS, o.Timeout)}
	if r.Text("stream", &cfg.Stream) && cfg.Stream == "" {
		r.Fail("stream is empty; leave it out for the name of the queue")
	}
	r.Int("maxlen", &cfg.MaxLen)
	return cfg, r.Done()
}
