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
	"github.com/tarryhq/tarry/engine/internal/gate"
	"github.com/tarryhq/tarry/engine/internal/hint"
	"github.com/tarryhq/tarry/engine/internal/token"
	"github.com/tarryhq/tarry/internal/trouble"
)

// Engine keeps messages in RabbitMQ. Its methods may be called from many goroutines.
//
// It connects by itself again when a connection ends; until then calls wait for up to two
// seconds and fail with ErrUnavailable.
type Engine struct {
	cfg    Config
	urls   []string // of the nodes
	node   int      // that of the last connection; of who dials
	dialAs amqp.Config
	caps   engine.Capabilities

	gate      gate.Gate
	watchers  hint.Watchers
	ids       *ids
	closing   context.Context // over once Close begins
	close     context.CancelFunc
	quiet     chan struct{} // closed when no call is under way any more
	quietOnce sync.Once
	tasks     sync.WaitGroup
	deadTurn  sync.Mutex // held by who looks through the dead
	measured  measured
	trouble   *trouble.Log

	mu      sync.Mutex
	session *session      // nil: there is none for now
	reason  error         // why not
	news    chan struct{} // closed when either changes
	queues  map[string]*queue
	leases  map[token.Nonce]*lease
	ends    deadlines
	wake    chan struct{} // holds one token: a lease ends sooner, or a queue has come to be watched
}

var (
	_ engine.LeaseWaiter = (*Engine)(nil)
	_ engine.Lister      = (*Engine)(nil)
	_ engine.Redriver    = (*Engine)(nil)
)

// New opens an engine on the broker that an AMQP URL names, amqp://user:password@host/vhost,
// and declares exchanges and queues there. cfg may be nil. It fails with ErrInvalid when the
// settings will not do or differ from those of what is there, ErrUnauthorized for a wrong
// password, ErrForbidden where rights are missing and ErrUnavailable when nobody answers.
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
		queues: make(map[string]*queue), leases: make(map[token.Nonce]*lease), wake: make(chan struct{}, 1), quiet: make(chan struct{}),
		trouble: trouble.New(full.Logger),
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
		Tuning: engine.Tuning{Recheck: time.Second},
	}
	if len(full.Delays) > 0 {
		e.caps.Precision = time.Millisecond
	}
	e.begun(s)
	e.tasks.Go(func() { e.keep(s) })
	e.tasks.Go(e.tend)
	return e, nil
}

// nodes are the URLs of all nodes of a cluster.
func nodes(first string, further []string) ([]string, error) {
	u, err := url.Parse(first)
	if err != nil { // which repeats it, with the password
		return nil, engine.Invalid("open", engine.Ref{}, "this is no URL of RabbitMQ; an example is amqp://user@127.0.0.1:5672/vhost")
	}
	all := []string{first}
	for _, node := range further {
		u.Host = node
		all = append(all, u.String())
	}
	return all, nil
}

// maxBody is how large a body may be here. The broker's max_message_size may be less: RabbitMQ 4
// takes 16 MiB by default, and tells nobody before it refuses a message.
const maxBody = 128 << 20

// heartbeat is how often each side shows that it is there: a connection on which nothing
// comes for twice as long is over.
const heartbeat = 5 * time.Second

// dialing is how connections are opened.
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

// layoutFor is the layout on a broker.
func (e *Engine) layoutFor(c *amqp.Connection) *layout {
	quorum := e.cfg.Queues == Quorum
	if e.cfg.Queues == "" {
		version, _ := c.Properties["version"].(string)
		quorum = atLeast(version, 3, 10)
	}
	return &layout{prefix: e.cfg.Prefix, unit: e.cfg.Unit, levels: e.cfg.Levels, delays: e.cfg.Delays, quorum: quorum}
}

// atLeast reports whether a version is not before another; one that cannot be read is not.
func atLeast(version string, major, minor int) bool {
	a, rest, _ := strings.Cut(version, ".")
	b, _, _ := strings.Cut(rest, ".")
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	return errX == nil && errY == nil && (x > major || x == major && y >= minor)
}

// Capabilities says what RabbitMQ can do: nothing that takes finding a message by its name.
func (e *Engine) Capabilities() engine.Capabilities { return e.caps }

// Watch hints at queues to which this engine has pushed, or put back, what is due. Of what
// others push it does not know; who waits for that does so in LeaseWait.
func (e *Engine) Watch(fn func(queue string)) (stop func()) { return e.watchers.Watch(fn) }

// Close ends the connections, and with them all leases: RabbitMQ delivers their messages
// again, the attempts counted.
func (e *Engine) Close() error {
	idle := e.gate.Close()
	e.close()
	late := time.NewTimer(closeWithin)
	defer late.Stop()
	select {
	case <-idle:
	case <-late.C: // the end of the connections ends them
	}
	e.quietOnce.Do(func() { close(e.quiet) })
	<-idle
	e.tasks.Wait()
	e.trouble.Flush()
	return nil
}

// closeWithin is how long Close waits for what the broker has not answered.
const closeWithin = 5 * time.Second

// lacks is the error of a call that RabbitMQ has nothing for.
func lacks(op string, ref engine.Ref, hint string) error {
	return &engine.Error{Op: op, Queue: ref.Queue, ID: ref.ID, Key: ref.Key, Err: engine.ErrUnsupported, Hint: hint}
}

const noNames = "RabbitMQ finds no message by a name; another engine can hold the delay, and package forward hands what is due to RabbitMQ"

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

// Reschedule fails likewise.
func (e *Engine) Reschedule(ctx context.Context, ref engine.Ref, _ engine.When) (engine.Info, error) {
	if err := e.gate.Enter(ctx, "reschedule"); err != nil {
		return engine.Info{}, err
	}
	defer e.gate.Leave()
	return engine.Info{}, lacks("reschedule", ref, noNames)
}

// Get fails likewise.
func (e *Engine) Get(ctx context.Context, ref engine.Ref) (engine.Info, error) {
	if err := e.gate.Enter(ctx, "get"); err != nil {
		return engine.Info{}, err
	}
	defer e.gate.Leave()
	return engine.Info{}, lacks("get", ref, noNames)
}
