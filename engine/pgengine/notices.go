package pgengine

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine/internal/attempt"
)

// notices tells other processes of queues that may have something sooner, and hears what
// they tell, on a connection of its own. A notice is only a hint: within Recheck it is met
// without.
type notices struct {
	pool    *pgxpool.Pool
	log     *slog.Logger
	channel string
	origin  string // this process: it knows what it has told
	heard   func(queue string)

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	queues  map[string]struct{} // to be told
	telling bool
}

func newNotices(pool *pgxpool.Pool, schema string, log *slog.Logger) *notices {
	n := &notices{pool: pool, log: log, channel: "tarry_" + schema, origin: rand.Text(), queues: make(map[string]struct{})}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// listen begins to hear.
func (n *notices) listen(heard func(queue string)) {
	n.heard = heard
	n.tasks.Go(func() {
		pause := attempt.Pause{Least: 100 * time.Millisecond, Most: 5 * time.Second}
		warned := false
		for {
			err := n.hear(&pause)
			if n.ctx.Err() != nil {
				return
			}
			if !warned {
				n.log.Warn("tarry: no notices come from PostgreSQL; what other processes push that is due before all else is met within "+Recheck.String(), "error", err)
				warned = true
			}
			if !pause.Wait(n.ctx) {
				return
			}
		}
	})
}

// hear listens on a connection until that fails.
func (n *notices) hear(pause *attempt.Pause) error {
	cfg := n.pool.Config().ConnConfig.Copy()
	cfg.OnNotification = nil // they are waited for
	// There is no statement to be cancelled, and the connection ends with the wait.
	cfg.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
	}
	conn, err := pgx.ConnectConfig(n.ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), rollbackWithin)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(n.ctx, "LISTEN "+pgx.Identifier{n.channel}.Sanitize()); err != nil {
		return err
	}
	if err := n.hearMyself(conn); err != nil {
		return err
	}
	pause.Reset()
	for {
		notice, err := conn.WaitForNotification(n.ctx)
		if err != nil {
			return err
		}
		if origin, queue, ok := strings.Cut(notice.Payload, " "); ok && origin != n.origin {
			n.heard(queue)
		}
	}
}

// hearWithin is how long a notice may take that this process sends itself.
const hearWithin = 5 * time.Second

var errDeaf = errors.New("a notice to itself did not arrive: is there a PgBouncer in transaction mode on the way?")

// hearMyself sees whether notices arrive at all: a PgBouncer that shares connections between
// transactions takes a LISTEN, and passes nothing on.
func (n *notices) hearMyself(conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(n.ctx, hearWithin)
	defer cancel()
	if err := n.send(ctx, []string{""}); err != nil {
		return err
	}
	for {
		notice, err := conn.WaitForNotification(ctx)
		if ctx.Err() != nil && n.ctx.Err() == nil {
			return errDeaf
		}
		if err != nil {
			return err
		}
		if origin, _, _ := strings.Cut(notice.Payload, " "); origin == n.origin {
			return nil
		}
	}
}

// tell tells others of queues, soon.
func (n *notices) tell(queues []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, q := range queues {
		n.queues[q] = struct{}{}
	}
	if !n.telling && n.ctx.Err() == nil {
		n.telling = true
		n.tasks.Go(n.sendAll)
	}
}

// sendAll sends what is to be told until there is no more: what comes while a statement is
// under way goes with the next.
func (n *notices) sendAll() {
	for {
		n.mu.Lock()
		if len(n.queues) == 0 || n.ctx.Err() != nil {
			n.telling = false
			n.mu.Unlock()
			return
		}
		var queues []string
		for q := range n.queues {
			queues = append(queues, q)
		}
		clear(n.queues)
		n.mu.Unlock()
		_ = n.send(n.ctx, queues) // else it is met within Recheck
	}
}

func (n *notices) send(ctx context.Context, queues []string) error {
	_, err := n.pool.Exec(ctx, "SELECT pg_notify($1, $2 || ' ' || q) FROM unnest($3::text[]) q", n.channel, n.origin, queues)
	return err
}

func (n *notices) close() {
	n.cancel()
	n.tasks.Wait()
}
