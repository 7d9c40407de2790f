package pgengine

import (
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/enginetest"
	"github.com/tarryhq/tarry/engine/internal/servertest"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine/sqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

// listener returns the server process that listens for an application, once it is another.
func listener(t *testing.T, pool *pgxpool.Pool, app string, but int) (pid int) {
	t.Helper()
	servertest.Await(t, "somebody to listen", func() error {
		return pool.QueryRow(t.Context(), `SELECT pid FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE 'LISTEN%' AND state = 'idle' AND application_name = $1 AND pid <> $2`, app, but).Scan(&pid)
	})
	return pid
}

// An engine listens again when the server ends its connection, and then gets notices at once.
func TestListenerEnds(t *testing.T) {
	t.Parallel()
	raw := pgtest.Shared(t)
	direct := connect(t, raw)
	schema := newSchema(t, direct)
	p := pgtest.StartProxy(t, raw)
	p.Refuse(true)
	said := make(servertest.Lines, 10)
	e := newEngine(connect(t, with(t, p.URL(), "application_name=it")), &Config{Schema: schema, Logger: slog.New(slog.NewTextHandler(said, nil))}, nil)
	defer e.Close()
	if line := <-said; !strings.Contains(line, "no notices come") || strings.Contains(line, `\n`) || strings.Contains(line, `\t`) {
		t.Errorf("the log says %q", line)
	}
	if n := enginetest.FigureOf(t, e, "postgres_listening", ""); n != 0 {
		t.Errorf("it is told to listen where it cannot: %v", n)
	}
	p.Refuse(false)
	heard := make(chan string, 100)
	defer e.Watch(func(queue string) { heard <- queue })()
	other := another(t, direct, schema)
	pid := 0
	for i, queue := range []string{"first", "second"} {
		if line := <-said; !strings.Contains(line, "notices come from PostgreSQL again") {
			t.Errorf("the log says %q", line)
		}
		if is, times := enginetest.FigureOf(t, e, "postgres_listening", ""), enginetest.FigureOf(t, e, "postgres_listens", ""); is != 1 || times != float64(i+1) {
			t.Errorf("it is told to listen (%v) for the %v. time", is, times)
		}
		pid = listener(t, direct, "it", pid)
		push(t, other, engine.Message{Queue: queue})
		if got := <-heard; got != queue {
			t.Errorf("heard of %q, not of %q", got, queue)
		}
		if queue == "second" {
			break
		}
		_, err := direct.Exec(t.Context(), "SELECT pg_terminate_backend($1)", pid)
		ok(t, err)
		if line := <-said; !strings.Contains(line, "no notices come") {
			t.Errorf("the log says %q", line)
		}
	}
}

// It checks repeatedly whether notices arrive, and misses none meanwhile.
func TestListenerLooks(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	n := newNotices(pool, "looks", slog.Default())
	n.every = time.Millisecond
	heard := make(chan sqlengine.Sooner, 100)
	n.listen(func(s sqlengine.Sooner) { heard <- s })
	defer n.close()
	pid := listener(t, pool, "", 0)
	for range 20 {
		_, err := pool.Exec(t.Context(), "SELECT pg_notify('tarry_looks', 'other 5 q')")
		ok(t, err)
		if s := <-heard; s.Queue != "q" || s.At != 5 {
			t.Errorf("heard of %v", s)
		}
	}
	if again := listener(t, pool, "", 0); again != pid {
		t.Errorf("another connection listens")
	}
}

// Other processes get a notice when a queue below in_flight can be leased again.
func TestFreedPlaceIsTold(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	schema := newSchema(t, pool)
	e, other := another(t, pool, schema), another(t, pool, schema)
	_, err := e.Configure(t.Context(), "q", engine.Settings{InFlight: 1}, "")
	ok(t, err)
	push(t, e, engine.Message{Queue: "q"}, engine.Message{Queue: "q"}, engine.Message{Queue: "q"})
	heard := make(chan string, 100)
	defer other.Watch(func(queue string) { heard <- queue })()
	servertest.Await(t, "both to hear", func() error {
		push(t, e, engine.Message{Queue: rand.Text()})
		select {
		case <-heard:
			return nil
		case <-time.After(100 * time.Millisecond):
			return errDeaf
		}
	})
	for _, do := range []engine.Action{engine.Ack, engine.Bury} {
		l := lease(t, e, "q", 1).Messages[0]
		if g := lease(t, other, "q", 1); len(g.Messages) > 0 || !g.Held {
			t.Fatalf("%+v", g)
		}
		for len(heard) > 0 {
			<-heard
		}
		r, err := e.Settle(t.Context(), []engine.Settlement{{Token: l.Token, Do: do}})
		ok(t, err)
		ok(t, r[0].Err)
		for q := ""; q != "q"; {
			select {
			case q = <-heard:
			case <-time.After(time.Minute):
				t.Fatalf("%v: nobody told of the place", do)
			}
		}
	}
}

// Other processes get notices of a caller's transaction after its commit.
func TestInTxTellsOthers(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	schema := newSchema(t, pool)
	e, other := another(t, pool, schema), another(t, pool, schema)
	heard := make(chan string, 100)
	defer other.Watch(func(queue string) { heard <- queue })()
	servertest.Await(t, "both to hear", func() error {
		name := rand.Text()
		push(t, e, engine.Message{Queue: name})
		return hears(heard, name)
	})
	tx := begin(t, pool)
	in, err := InTx(sqltest.Client{E: e}, tx)
	ok(t, err)
	push(t, e, engine.Message{Queue: "q"})
	for q := ""; q != "q"; q = <-heard {
	}
	push(t, in.E, engine.Message{Queue: "q"})
	if g := lease(t, other, "q", 10); len(g.Messages) != 1 {
		t.Fatalf("leased %v", g)
	}
	ok(t, tx.Commit(t.Context()))
	for timeout := time.After(time.Minute); ; {
		select {
		case q := <-heard:
			if q == "q" {
				return
			}
		case <-timeout:
			t.Fatal("nobody told of the push")
		}
	}
}

// A push is told although another message was due before it: who leases that one may not see it.
func TestPushBesideADueMessageIsTold(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	schema := newSchema(t, pool)
	e, other := another(t, pool, schema), another(t, pool, schema)
	heard := make(chan string, 100)
	defer other.Watch(func(queue string) { heard <- queue })()
	servertest.Await(t, "the other to hear of two pushes", func() error {
		name := rand.Text()
		for _, ago := range []time.Duration{200 * time.Millisecond, 100 * time.Millisecond} {
			push(t, e, engine.Message{Queue: name, Due: engine.When{At: time.Now().Add(-ago)}})
			if err := hears(heard, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// hears waits a moment for a notice of a queue.
func hears(heard chan string, queue string) error {
	for timeout := time.After(100 * time.Millisecond); ; {
		select {
		case q := <-heard:
			if q == queue {
				return nil
			}
		case <-timeout:
			return errDeaf
		}
	}
}

// Notices follow for messages that are due soon. Others are found by looking again in time.
func TestFarIsNotTold(t *testing.T) {
	t.Parallel()
	pool := connect(t, pgtest.Shared(t))
	schema := newSchema(t, pool)
	e, other := another(t, pool, schema), another(t, pool, schema)
	heard := make(chan string, 100)
	defer other.Watch(func(queue string) { heard <- queue })()
	next := func() string {
		q := rand.Text()
		push(t, other, engine.Message{Queue: q, Due: engine.When{In: time.Hour}}) // so that it knows the queue
		for len(heard) > 0 {
			<-heard
		}
		return q
	}
	far := next()
	servertest.Await(t, "both to hear", func() error {
		near := next()
		push(t, e, engine.Message{Queue: far, Due: engine.When{In: 10 * time.Minute}})
		push(t, e, engine.Message{Queue: near})
		for {
			select {
			case q := <-heard:
				if q == near {
					return nil
				} else if q == far {
					t.Error("what is due in ten minutes is told")
				}
			case <-time.After(100 * time.Millisecond):
				return errDeaf
			}
		}
	})
}
