package pgengine

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/internal/calls"
	"github.com/tarryhq/tarry/internal/duration"
)

// notices sends notices about queues that may have something sooner, and receives those of
// other processes on its own connection. A notice is only a hint: without it, a push is seen
// within Recheck.
type notices struct {
	pool    *pgxpool.Pool
	log     *slog.Logger
	channel string
	origin  string // identifies this process, which ignores its own notices
	every   time.Duration
	heard   func(sqlengine.Sooner)

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	listening atomic.Bool
	listens   atomic.Int64 // how often listening began

	mu      sync.Mutex
	queues  map[string]int64 // when queues may have something; not yet sent
	telling bool
}

func newNotices(pool *pgxpool.Pool, schema string, log *slog.Logger) *notices {
	n := &notices{pool: pool, log: log, channel: "tarry_" + schema, origin: rand.Text(), every: hearEvery, queues: make(map[string]int64)}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// listen starts receiving notices.
func (n *notices) listen(heard func(sqlengine.Sooner)) {
	n.heard = heard
	n.tasks.Go(func() {
		pause := calls.Pause{Least: 100 * time.Millisecond, Most: 5 * time.Second}
		deaf := calls.Pause{Least: deafPause, Most: deafPause}
		warned := false
		hears := func() {
			if !n.listening.Swap(true) {
				n.listens.Add(1)
			}
			pause.Reset()
			if warned {
				n.log.Info("tarry: notices come from PostgreSQL again")
				warned = false
			}
		}
		for {
			err := n.hear(hears)
			n.listening.Store(false)
			if n.ctx.Err() != nil {
				return
			}
			if !warned {
				n.log.Warn("tarry: no notices come from PostgreSQL; a message that another process pushes and that is due first is late by up to "+Recheck.String(), "error", oneLine(err))
				warned = true
			}
			next := &pause
			if err == errDeaf {
				next = &deaf
			}
			if !next.Wait(n.ctx) {
				return
			}
		}
	})
}

// deafPause is the pause before the next check whether a PgBouncer withholds notices.
const deafPause = 10 * time.Minute

// hear listens on a connection until it fails. It calls hears once notices arrive.
func (n *notices) hear(hears func()) error {
	cfg := n.pool.Config().ConnConfig.Copy()
	cfg.OnNotification = nil // WaitForNotification receives them
	// No statement needs to be cancelled: the connection ends with the wait.
	cfg.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
	}
	ctx, cancel := context.WithTimeout(n.ctx, hearWithin)
	conn, err := pgx.ConnectConfig(ctx, cfg)
	cancel()
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), rollbackWithin)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if err := n.alone(conn); err != nil {
		return err
	}
	server, err := n.run(conn, "LISTEN")
	if err != nil {
		return err
	}
	for {
		if err := n.hearMyself(conn); err == errDeaf {
			n.unlisten(conn, server)
			return err
		} else if err != nil {
			return err
		}
		hears()
		if err := n.hearOthers(conn); err != nil {
			return err
		}
	}
}

// aloneTries is how often alone compares the server processes of two connections.
const aloneTries = 5

// alone returns errDeaf if a PgBouncer evidently shares connections between transactions: a
// LISTEN would then affect other clients.
func (n *notices) alone(conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(n.ctx, hearWithin)
	defer cancel()
	for range aloneTries {
		var mine, other uint32
		if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&mine); err != nil {
			return err
		}
		if mine == conn.PgConn().PID() { // a direct connection
			return nil
		}
		if err := n.pool.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&other); err != nil {
			return err
		}
		if mine == other {
			return errDeaf
		}
	}
	return nil
}

// run runs LISTEN or UNLISTEN and returns the server process that ran it.
func (n *notices) run(conn *pgx.Conn, what string) (server string, err error) {
	ctx, cancel := context.WithTimeout(n.ctx, hearWithin)
	defer cancel()
	results, err := conn.PgConn().Exec(ctx, what+" "+pgx.Identifier{n.channel}.Sanitize()+"; SELECT pg_backend_pid()").ReadAll()
	if err != nil {
		return "", err
	}
	return string(results[1].Rows[0][0]), nil
}

// unlistenMost bounds the tries to reach the listening server process again.
const unlistenMost = 20

// unlisten undoes a LISTEN in a server process. A PgBouncer keeps that process for other
// clients, and may connect to another one at first.
func (n *notices) unlisten(conn *pgx.Conn, server string) {
	for range unlistenMost {
		if met, err := n.run(conn, "UNLISTEN"); err != nil || met == server {
			return
		}
	}
}

const (
	// hearWithin is how long a notice from this process to itself may take.
	hearWithin = 5 * time.Second

	// hearEvery is how often the process sends itself a notice, because a network may drop a
	// connection silently.
	hearEvery = time.Minute
)

// hearOthers handles notices of other processes for a while.
func (n *notices) hearOthers(conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(n.ctx, n.every)
	defer cancel()
	for {
		notice, err := conn.WaitForNotification(ctx)
		if err != nil && ctx.Err() != nil {
			return n.ctx.Err()
		}
		if err != nil {
			return err
		}
		n.pass(notice)
	}
}

// pass handles a notice, and reports whether it is from this process.
func (n *notices) pass(notice *pgconn.Notification) (mine bool) {
	origin, rest, _ := strings.Cut(notice.Payload, " ")
	at, queue, _ := strings.Cut(rest, " ")
	if ms, err := strconv.ParseInt(at, 10, 64); err == nil && origin != n.origin && queue != "" { // "": a test of the sender's own connection
		n.heard(sqlengine.Sooner{Queue: queue, At: ms})
	}
	return origin == n.origin
}

var errDeaf = errors.New("its own notices do not arrive: there seems to be a PgBouncer in transaction mode in between")

// hearMyself checks that notices arrive: a PgBouncer that shares connections between
// transactions accepts a LISTEN but forwards no notices.
func (n *notices) hearMyself(conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(n.ctx, hearWithin)
	defer cancel()
	if err := n.send(ctx, []string{""}, []int64{0}); err != nil {
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
		if n.pass(notice) {
			return nil
		}
	}
}

// tell queues notices to other processes, which are sent soon.
func (n *notices) tell(sooner []sqlengine.Sooner) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range sooner {
		if at, ok := n.queues[s.Queue]; !ok || s.At < at {
			n.queues[s.Queue] = s.At
		}
	}
	if !n.telling && n.ctx.Err() == nil {
		n.telling = true
		n.tasks.Go(n.sendAll)
	}
}

// gather is how long notices gather after others were sent: each statement costs as much as a push.
const gather = 4 * time.Millisecond

// sendAll sends all notices. Notices queued during a statement go with the next.
func (n *notices) sendAll() {
	for {
		n.mu.Lock()
		if len(n.queues) == 0 || n.ctx.Err() != nil {
			n.telling = false
			n.mu.Unlock()
			return
		}
		var queues []string
		var at []int64
		for q, ms := range n.queues {
			queues, at = append(queues, q), append(at, ms)
		}
		clear(n.queues)
		n.mu.Unlock()
		_ = n.send(n.ctx, queues, at) // on failure, Recheck finds the messages
		duration.Sleep(n.ctx, gather)
	}
}

func (n *notices) send(ctx context.Context, queues []string, at []int64) error {
	ctx, cancel := context.WithTimeout(ctx, hearWithin)
	defer cancel()
	_, err := n.pool.Exec(ctx, "SELECT pg_notify($1, $2 || ' ' || u.at || ' ' || u.q) FROM unnest($3::text[], $4::bigint[]) u(q, at)", n.channel, n.origin, queues, at)
	return err
}

func (n *notices) close() {
	n.cancel()
	n.tasks.Wait()
}
