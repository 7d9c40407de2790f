package mysqlengine

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

func openURL(t testing.TB, at string) *tarry.Client {
	t.Helper()
	c, err := tarry.Open(t.Context(), at, nil)
	ok(t, err)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func pushKey(t testing.TB, c *tarry.Client, key string) error {
	t.Helper()
	_, err := c.Push(t.Context(), "orders", nil, tarry.Key(key), tarry.OnConflict(tarry.Keep))
	return err
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := mysqltest.Start(t, mysqltest.Settings("max_connections=10", "max_allowed_packet=1M"))
	at := s.Database()
	c := openURL(t, at+"?migrate=true&pace=3ms")
	ok(t, pushKey(t, c, "42"))
	if pace := c.Capabilities().Pace; pace != 3*time.Millisecond {
		t.Errorf("the pace is %v", pace)
	}
	says := func(what string, err, want error, hint string) {
		t.Helper()
		if !errors.Is(err, want) || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v", what, err)
		}
	}

	_, err := c.Push(ctx, "orders", make([]byte, 1<<20))
	says("a body beyond max_allowed_packet", err, tarry.ErrTooLarge, "body")
	worst := []byte(strings.Repeat("\x00", c.MaxBody()))
	m, err := c.Push(ctx, "orders", worst, tarry.Key("large"))
	ok(t, err)
	got, err := c.Get(ctx, tarry.ByID(m.ID).Of("orders"))
	if ok(t, err); len(got.Body) != len(worst) {
		t.Errorf("of %d bytes %d came back", len(worst), len(got.Body))
	}

	u, err := url.Parse(at)
	ok(t, err)
	s.Exec("CREATE USER reader")
	s.Exec("GRANT SELECT ON " + strings.TrimPrefix(u.Path, "/") + ".* TO reader")
	reader := openURL(t, mysqltest.As(t, at, "reader"))
	says("for one who may only read", pushKey(t, reader, "43"), tarry.ErrForbidden, "right")

	s.Exec("CREATE USER writer")
	s.Exec("GRANT SELECT, INSERT, UPDATE, DELETE ON " + strings.TrimPrefix(u.Path, "/") + ".* TO writer")
	writer := openURL(t, mysqltest.As(t, at, "writer"))
	ok(t, pushKey(t, writer, "44")) // no more rights than these are needed
	s.Exec("SET GLOBAL read_only = 1")
	says("while the server takes no writes", pushKey(t, writer, "45"), tarry.ErrUnavailable, "read-only")
	_, err = tarry.Open(ctx, mysqltest.As(t, at, "writer"), nil)
	says("opened then", err, tarry.ErrInvalid, "the server is read-only: name the one")
	s.Exec("SET GLOBAL read_only = 0")
	ok(t, pushKey(t, writer, "45"))

	db := connect(t, mysqltest.As(t, at, "writer"), true)
	db.SetMaxOpenConns(20)
	for err = nil; err == nil; {
		var conn *sql.Conn
		if conn, err = db.Conn(ctx); err == nil {
			defer conn.Close()
		}
	}
	says("with no connection left", fault(ctx, "push", err, false), tarry.ErrUnavailable, "max_connections")
}

// Deadlocks and conflicts are frequent here, and no caller gets one.
func TestHotKeys(t *testing.T) {
	t.Parallel()
	c := openURL(t, mysqltest.Shared(t)+"?migrate=true")
	var all sync.WaitGroup
	for n := range 64 {
		all.Go(func() {
			for i := range 20 {
				key := tarry.ByKey(fmt.Sprint((n*7 + i*13) % 100)).Of("orders")
				var err error
				switch i % 4 {
				case 0, 1:
					_, err = c.Push(t.Context(), "orders", nil, tarry.Key(key.Key), tarry.OnConflict(tarry.Replace))
				case 2:
					err = c.Cancel(t.Context(), key)
				case 3:
					_, err = c.Reschedule(t.Context(), key, tarry.In(0))
				}
				if err != nil && !errors.Is(err, tarry.ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
