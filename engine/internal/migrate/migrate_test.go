package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tarryhq/tarry/engine/internal/migrate"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

func TestUpAndDown(t *testing.T) {
	onBoth(t, func(t *testing.T, d dbms, url string) {
		db := d.open(t, url)
		s := d.set(t, "tarry", d.files(t, 3))
		if err := s.Check(t.Context(), db); !errors.Is(err, migrate.ErrOld) || !strings.Contains(err.Error(), "tarry migrate up") {
			t.Fatalf("an empty database: %v", err)
		}
		for _, want := range [][]int64{{1, 2, 3}, nil} {
			done, err := s.Up(t.Context(), db)
			if err != nil || !slices.Equal(done, want) {
				t.Fatalf("it has applied %v, not %v: %v", done, want, err)
			}
		}
		if err := s.Check(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		exec(t, db, "INSERT INTO "+d.full("tarry", "jobs")+" (id, due, priority) VALUES (1, now(), 2)")
		done, err := s.Down(t.Context(), db, 1)
		if err != nil || !slices.Equal(done, []int64{3, 2}) {
			t.Fatalf("it has taken back %v: %v", done, err)
		}
		if d.has(t, db, "tarry", "past") || !d.has(t, db, "tarry", "jobs") {
			t.Error("not what version 1 has")
		}
		all, err := s.Status(t.Context(), db)
		if err != nil || len(all) != 3 || time.Since(all[0].Applied).Abs() > time.Hour || !all[1].Applied.IsZero() || all[2].File != "00003_priority.sql" {
			t.Errorf("the status is %v, %v", all, err)
		}
		if done, err := s.Down(t.Context(), db, 0); err != nil || !slices.Equal(done, []int64{1}) {
			t.Fatalf("it has taken back %v: %v", done, err)
		}
		if done, err := s.Down(t.Context(), db, 0); err != nil || len(done) > 0 {
			t.Fatalf("it has taken back %v: %v", done, err)
		}
		if d.has(t, db, "tarry", "jobs") {
			t.Error("a table is left")
		}
		if done, err := s.Up(t.Context(), db); err != nil || len(done) != 3 {
			t.Fatalf("it has applied %v: %v", done, err)
		}
	})
}

func TestStoresStandBesideOneAnother(t *testing.T) {
	onBoth(t, func(t *testing.T, d dbms, url string) {
		db := d.open(t, url)
		longest := strings.Repeat("X", migrate.MaxName)
		for _, store := range []string{"tarry", "Tarry_2", "2", longest} {
			if done, err := d.set(t, store, d.files(t, 3)).Up(t.Context(), db); err != nil || len(done) != 3 {
				t.Fatalf("%s: it has applied %v: %v", store, done, err)
			}
		}
		if _, err := d.set(t, "Tarry_2", d.files(t, 3)).Down(t.Context(), db, 0); err != nil {
			t.Fatal(err)
		}
		if err := d.set(t, "tarry", d.files(t, 3)).Check(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	})
}

func TestVersions(t *testing.T) {
	onBoth(t, func(t *testing.T, d dbms, url string) {
		db := d.open(t, url)
		older, newer := d.set(t, "tarry", d.files(t, 2)), d.set(t, "tarry", d.files(t, 3))
		if _, err := older.Up(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		if err := newer.Check(t.Context(), db); !errors.Is(err, migrate.ErrOld) || !strings.Contains(err.Error(), "version 2") {
			t.Errorf("an old store: %v", err)
		}
		if done, err := newer.Up(t.Context(), db); err != nil || !slices.Equal(done, []int64{3}) {
			t.Fatalf("it has applied %v: %v", done, err)
		}
		_, up := older.Up(t.Context(), db)
		_, down := older.Down(t.Context(), db, 0)
		for _, err := range []error{older.Check(t.Context(), db), up, down} {
			if !errors.Is(err, migrate.ErrNew) || !strings.Contains(err.Error(), "version 3") {
				t.Errorf("a new store: %v", err)
			}
		}
		if all, err := older.Status(t.Context(), db); err != nil || len(all) != 3 || all[2].File != "" || all[2].Applied.IsZero() {
			t.Errorf("the status is %v, %v", all, err)
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, d dbms, url string) {
		const many = 10
		var all sync.WaitGroup
		var mu sync.Mutex
		var done []int64
		for range many {
			db, s := d.open(t, url), d.set(t, "tarry", d.files(t, 3))
			db.SetMaxOpenConns(1) // one has to be enough
			all.Go(func() {
				versions, err := s.Up(t.Context(), db)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				done = append(done, versions...)
			})
		}
		all.Wait()
		if slices.Sort(done); !slices.Equal(done, []int64{1, 2, 3}) {
			t.Errorf("applied were %v", done)
		}
	})
}

func TestWaitsNoLongerThanItMay(t *testing.T) {
	onBoth(t, func(t *testing.T, d dbms, url string) {
		s := d.set(t, "tarry", d.files(t, 1))
		begun, goOn := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		defer all.Wait()
		defer close(goOn)
		all.Go(func() { holdLock(t, d, url, begun, goOn) })
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := s.Up(ctx, d.open(t, url)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it says %v", err)
		}
	})
}

// holdLock has the lock of the store tarry until goOn is closed.
func holdLock(t *testing.T, d dbms, url string, begun, goOn chan struct{}) {
	defer close(begun)
	conn, err := d.open(t, url).Conn(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	lock := map[string]string{
		"postgres": "SELECT pg_advisory_lock(hashtextextended('tarry migrations tarry', 0))",
		"mysql":    "DO GET_LOCK(CONCAT('tarry ', SHA2(CONCAT(DATABASE(), '.tarry'), 224)), 1)",
	}[d.name]
	if _, err := conn.ExecContext(t.Context(), lock); err != nil {
		t.Error(err)
	}
	begun <- struct{}{}
	<-goOn
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

func TestFailingMigration(t *testing.T) {
	onBoth(t, func(t *testing.T, d dbms, url string) {
		db := d.open(t, url)
		files := d.files(t, 1)
		files["00002_bad.sql"] = &fstest.MapFile{Data: []byte(`-- migrate: up
CREATE TABLE IF NOT EXISTS {{good}} (id int);
CREATE TABLE {{bad}} AS SELECT * FROM {{nowhere}};
-- migrate: down
DROP TABLE {{good}};
`)}
		s := d.set(t, "tarry", files)
		done, err := s.Up(t.Context(), db)
		if err == nil || !slices.Equal(done, []int64{1}) {
			t.Fatalf("it has applied %v: %v", done, err)
		}
		atomic := d.name == "postgres"
		wants := []string{"00002_bad.sql", "statement 2", "nowhere"}
		if atomic {
			wants = append(wants, "this migration changed nothing")
		} else {
			wants = append(wants, "has kept the changes of the statements before it", "run tarry migrate up again")
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("it does not say %q: %v", want, err)
			}
		}
		if d.has(t, db, "tarry", "good") == atomic {
			t.Errorf("the first statement's table is there: %v", !atomic)
		}
		if v, err := s.Version(t.Context(), db); err != nil || v != 1 {
			t.Errorf("the version is %d, %v", v, err)
		}
		// Mended, it goes on.
		exec(t, db, "CREATE TABLE "+d.full("tarry", "nowhere")+" (id int)")
		if done, err := s.Up(t.Context(), db); err != nil || !slices.Equal(done, []int64{2}) {
			t.Fatalf("it has applied %v: %v", done, err)
		}
	})
}

// A process dies in the middle of a migration: the next takes over the lock and completes it.
func TestKilledMigration(t *testing.T) {
	onBoth(t, func(t *testing.T, d dbms, url string) {
		db := d.open(t, url)
		set := func(second string) *migrate.Set {
			files := d.files(t, 1)
			files["00002_slow.sql"] = &fstest.MapFile{Data: []byte("-- migrate: up\nCREATE TABLE IF NOT EXISTS {{good}} (id int);\n" +
				second + ";\n-- migrate: down\nDROP TABLE {{good}};\n")}
			return d.set(t, "tarry", files)
		}
		var dies, next error
		var all sync.WaitGroup
		all.Go(func() { _, dies = set(d.sleep).Up(t.Context(), d.open(t, url)) })
		var session string
		for session == "" && t.Context().Err() == nil {
			if err := db.QueryRowContext(t.Context(), d.sleeper).Scan(&session); err != nil && !errors.Is(err, sql.ErrNoRows) {
				t.Fatal(err)
			}
		}
		var done []int64
		all.Go(func() { done, next = set("SELECT 1").Up(t.Context(), d.open(t, url)) })
		exec(t, db, fmt.Sprintf(d.kill, session))
		all.Wait()
		if dies == nil || !strings.Contains(dies.Error(), "00002_slow.sql, up: statement 2") || strings.Contains(dies.Error(), "lock") {
			t.Errorf("the killed one says %v", dies)
		}
		if next != nil || !slices.Equal(done, []int64{2}) || !d.has(t, db, "tarry", "good") {
			t.Errorf("the next has applied %v: %v", done, next)
		}
	})
}

func TestLackingRights(t *testing.T) {
	onBoth(t, func(t *testing.T, d dbms, _ string) {
		url := d.database(t)
		db := d.open(t, url)
		exec(t, db, d.makeUser)
		s, reader := d.set(t, "tarry", d.files(t, 2)), d.open(t, d.as(t, url, "reader"))
		if _, err := s.Up(t.Context(), reader); err == nil || !strings.Contains(err.Error(), "denied") {
			t.Errorf("who may make nothing is told %v", err)
		}
		if _, err := s.Up(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(t.Context(), reader); err == nil {
			t.Error("who may read nothing reads")
		}
		for statement := range strings.SplitSeq(d.allow, ";") {
			exec(t, db, statement)
		}
		if err := s.Check(t.Context(), reader); err != nil {
			t.Errorf("who may read the versions is told %v", err)
		}
		if done, err := s.Up(t.Context(), reader); err != nil || len(done) > 0 {
			t.Errorf("who has nothing to apply is told %v, %v", done, err)
		}
		if _, err := s.Down(t.Context(), reader, 0); err == nil {
			t.Error("who may only read takes something back")
		}
		if err := s.Check(t.Context(), db); err != nil {
			t.Error(err)
		}
	})
}

// What is printed does what Up does.
func TestPrint(t *testing.T) {
	onBoth(t, func(t *testing.T, d dbms, url string) {
		db := d.open(t, url)
		s := d.set(t, "tarry", d.files(t, 3))
		apply := func(text string) {
			t.Helper()
			for _, statement := range statements(text) {
				exec(t, db, statement)
			}
		}
		whole, rest := s.Print(0), s.Print(2)
		apply(strings.TrimSuffix(whole, rest))
		if v, err := s.Version(t.Context(), db); err != nil || v != 2 {
			t.Fatalf("the version is %d, %v", v, err)
		}
		apply(rest)
		if err := s.Check(t.Context(), db); err != nil {
			t.Error(err)
		}
		if s.Print(3) != "" || s.Print(4) != "" {
			t.Error("after the last version something is printed")
		}
		if strings.Contains(whole, "migrate:") || strings.Contains(whole, "{{") || strings.Contains(whole, "DROP") {
			t.Errorf("this is printed:\n%s", whole)
		}
		if done, err := s.Down(t.Context(), db, 0); err != nil || len(done) != 3 {
			t.Errorf("it has taken back %v: %v", done, err)
		}
	})
}

// statements parts a text as psql does, for texts in which a line with $$ begins or ends
// what has semicolons of its own.
func statements(text string) []string {
	var all []string
	var one strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		one.WriteString(line)
		inside = inside != (strings.Count(line, "$$")%2 == 1)
		if !inside && strings.HasSuffix(line, ";\n") {
			all = append(all, one.String())
			one.Reset()
		}
	}
	return all
}

// Behind a PgBouncer in transaction mode the lock may be lost, which is said.
func TestBehindPgBouncer(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t)
	b := s.Bouncer("default_pool_size = 2", "server_round_robin = 1")
	url := b.URL(s.Database())
	d := both[0]
	busy := openPostgres(t, url+"&default_query_exec_mode=simple_protocol")
	tx, err := busy.BeginTx(t.Context(), nil) // so that there are two connections
	if err == nil {
		_, err = tx.ExecContext(t.Context(), "SELECT 1")
	}
	if err != nil {
		t.Fatal(err)
	}
	ping := openPostgres(t, url+"&default_query_exec_mode=simple_protocol")
	exec(t, ping, "SELECT 1")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	// The lock is taken in the first transaction and given back in the sixth.
	_, err = d.set(t, "tarry", d.files(t, 2)).Up(t.Context(), ping)
	if err == nil || !strings.Contains(err.Error(), "PgBouncer") {
		t.Errorf("it says %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := "-- migrate: up\nSELECT 1;\n-- migrate: down\nSELECT 1;\n"
	for _, c := range []struct {
		dialect     migrate.Dialect
		store, file string
		text, says  string
	}{
		{migrate.Postgres, "", "00001_a.sql", good, "name"},
		{migrate.Postgres, strings.Repeat("x", migrate.MaxName+1), "00001_a.sql", good, "40"},
		{migrate.Postgres, `a"b`, "00001_a.sql", good, `"a\"b"`},
		{migrate.MySQL, "a`b", "00001_a.sql", good, "letters"},
		{migrate.MySQL, "ä", "00001_a.sql", good, "letters"},
		{migrate.Postgres, "a", "00002_a.sql", good, "00001"},
		{migrate.Postgres, "a", "a.sql", good, "00001"},
		{migrate.Postgres, "a", "a.txt", good, "no migrations"},
		{migrate.Postgres, "a", "00001_a.sql", "SELECT 1;", "lacks"},
		{migrate.Postgres, "a", "00001_a.sql", "-- migrate: up\nSELECT 1;\n", "lacks"},
		{migrate.MySQL, "a", "00001_a.sql", "-- migrate: up\nSELECT 1\n-- migrate: down\nSELECT 1;\n", "semicolon"},
	} {
		_, err := migrate.New(c.dialect, c.store, fstest.MapFS{c.file: {Data: []byte(c.text)}})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: it says %v", fmt.Sprint(c.store, c.file, c.text), err)
		}
	}
}
