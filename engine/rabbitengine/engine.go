package rabbitengine

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/codec"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/duration"
	"github.com/tarryhq/tarry/internal/notify"
	"github.com/tarryhq/tarry/timer"
)

// Engine is an engine on RabbitMQ. It is safe for concurrent use.
//
// It reconnects by itself when a connection ends. Meanwhile, calls wait for up to two
// seconds and then fail with ErrUnavailable.
type Engine struct {
	cfg    Config
	urls   []string // the nodes
	node   int      // node of the last connection; used only by dial
	dialAs amqp.Config
	caps   engine.Capabilities

	gate      calls.Gate
	watchers  calls.Watchers
	ids       *ids
	closing   context.Context // cancelled by Close
	close     context.CancelFunc
	quiet     chan struct{} // closed when no call is in progress
	quietOnce sync.Once
	tasks     sync.WaitGroup
	deadTurn  sync.Mutex // held while dead messages are read
	measured  measured
	trouble   *notify.TroubleLog

	mu      sync.Mutex
	session *session      // nil: not connected
	reason  error         // why not connected
	news    chan struct{} // closed when session or reason changes
	queues  map[string]*queue
	leases  map[codec.Nonce]*item
	ends    *timer.Heap[*item] // with active leases, by deadline
	wake    chan struct{}      // one token: tend must look again
}

var (
	_ engine.LeaseWaiter = (*Engine)(nil)
	_ engine.Lister      = (*Engine)(nil)
	_ engine.Redriver    = (*Engine)(nil)
)

// New opens an engine on the broker of an AMQP URL, amqp://user:password@host/vhost, and
// declares its exchanges and queues. cfg may be nil. It fails with ErrInvalid if the settings
// are invalid or differ from those of existing queues, and with ErrUnavailable if no broker
// answers. It fails with ErrUnauthorized for a wrong password, and with ErrForbidden for
// missing rights.
func New(rawURL string, cfg *Config) (*Engine, error) { return open(rawURL, amqp.Config{}, cfg) }

func open(rawURL string, dial amqp.Config, cfg *Config) (*Engine, error) {
	full, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	urls, err := nodes(rawURL, full.Nodes)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		cfg: full, urls: urls, dialAs: dial, ids: newIDs(), news: make(chan struct{}),
		queues: make(map[string]*queue), leases: make(map[codec.Nonce]*item), ends: timer.NewHeap[*item](time.Now()), wake: make(chan struct{}, 1), quiet: make(chan struct{}),
		trouble: notify.NewTroubleLog(full.Logger),
	}
	e.closing, e.close = context.WithCancel(context.Background())
	s, err := e.dial()
	if err != nil {
		e.close()
		e.tasks.Wait()
		return nil, fault("open", "", err)
	}
	e.caps = engine.Capabilities{
		Name:      "rabbit",
		Abilities: engine.Abilities{Durable: true, Extend: true, GiveBack: true, ListDead: true, Redrive: true, LeaseWait: true},
		Limits: engine.Limits{
			MaxBody: maxBody, MaxDelay: s.layout.longest(), Delays: full.Delays, Precision: s.layout.unit, Window: 1,
		},
		Tuning: engine.Tuning{Recheck: time.Second, Pace: 5 * time.Millisecond},
	}
	if len(full.Delays) > 0 {
		e.caps.Precision = time.Millisecond
	}
	e.begun(s)
	e.tasks.Go(func() { e.keep(s) })
	e.tasks.Go(e.tend)
	return e, nil
}

// nodes returns the URLs of all nodes of a cluster.
func nodes(first string, further []string) ([]string, error) {
	u, err := url.Parse(first)
	if err != nil { // the error contains the password
		return nil, engine.Invalid("open", engine.Ref{}, "this is not a RabbitMQ URL; an example is amqp://user@127.0.0.1:5672/vhost")
	}
	all := []string{first}
	for _, node := range further {
		u.Host = node
		all = append(all, u.String())
	}
	return all, nil
}

// maxBody is the largest body. The broker's max_message_size may be smaller: RabbitMQ 4
// takes 16 MiB by default, and announces the limit only by refusing a message.
const maxBody = 128 << 20

// heartbeat is the interval of heartbeats: a connection that is silent for twice as long is
// closed.
const heartbeat = 5 * time.Second

// dialing returns the settings of new connections.
func (e *Engine) dialing() amqp.Config {
	c := e.dialAs
	if c.Heartbeat == 0 {
		c.Heartbeat = heartbeat
	}
	c.Properties = amqp.NewConnectionProperties()
	c.Properties.SetClientConnectionName("tarry")
	c.Dial = amqp.DefaultDial(dialWithin)
	return c
}

const dialWithin = 5 * time.Second

// layoutFor returns the layout on a broker.
func (e *Engine) layoutFor(c *amqp.Connection) *layout {
	quorum := e.cfg.Queues == Quorum
	if e.cfg.Queues == "" {
		version, _ := c.Properties["version"].(string)
		quorum = atLeast(version, 3, 10)
	}
	return &layout{prefix: e.cfg.Prefix, unit: e.cfg.Unit, delays: e.cfg.Delays, quorum: quorum}
}

// atLeast reports whether a version is the given one or later; false if it cannot be parsed.
func atLeast(version string, major, minor int) bool {
	a, rest, _ := strings.Cut(version, ".")
	b, _, _ := strings.Cut(rest, ".")
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	return errX == nil && errY == nil && (x > major || x == major && y >= minor)
}

// Capabilities lists what RabbitMQ can do: nothing that requires finding a message by name.
func (e *Engine) Capabilities() engine.Capabilities { return e.caps }

// Watch hints at queues to which this engine has pushed or returned due messages. It does
// not see pushes of other processes: LeaseWait does.
func (e *Engine) Watch(fn func(queue string)) (stop func()) { return e.watchers.Watch(fn) }

// Close closes the connections, which ends all leases: RabbitMQ delivers their messages
// again, with their attempts counted.
func (e *Engine) Close() error {
	idle := e.gate.Close()
	e.close()
	duration.Await(idle, closeWithin) // closing the connections ends the rest
	e.quietOnce.Do(func() { close(e.quiet) })
	<-idle
	e.tasks.Wait()
	e.trouble.Flush()
	return nil
}

// closeWithin is how long Close waits for pending answers of the broker.
const closeWithin = 5 * time.Second

// lacks returns the error of a call that RabbitMQ cannot support.
func lacks(op string, ref engine.Ref, hint string) error {
	return &engine.Error{Op: op, Queue: ref.Queue, ID: ref.ID, Key: ref.Key, Err: engine.ErrUnsupported, Hint: hint}
}

const noNames = "RabbitMQ cannot find a message by name; use another engine for the delay, and package forward to send due messages to RabbitMQ"

// Cancel fails: RabbitMQ cannot take a message out of a queue.
func (e *Engine) Cancel(ctx context.Context, refs []engine.Ref) ([]error, error) {
	if err := e.gate.Enter(ctx, "cancel"); err != nil {
		return nil, err
	}
	defer e.gate.Leave()
	errs := make([]error, len(refs))
	for i, ref := range refs {
		errs[i] = lacks("cancel", ref, noNames)
	}
	return errs, nil
}

// Reschedule fails for the same reason.
func (e *Engine) Reschedule(ctx context.Context, ref engine.Ref, _ engine.When) (engine.Info, error) {
	return engine.Info{}, e.refuseName(ctx, "reschedule", ref)
}

// Get fails for the same reason.
func (e *Engine) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	return engine.Info{}, e.refuseName(ctx, "get", ref)
}

func (e *Engine) refuseName(ctx context.Context, op string, ref engine.Ref) error {
	if err := e.gate.Enter(ctx, op); err != nil {
		return err
	}
	defer e.gate.Leave()
	return lacks(op, ref, noNames)
}
