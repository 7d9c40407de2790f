package cli

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/rueidis"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
	"github.com/tarryhq/tarry/server"
)

// hooked is a server to copy to, which calls pushed after each push that keeps, before it
// answers.
func hooked(t *testing.T, pushed func()) (url string, c *tarry.Client) {
	t.Helper()
	c = tarry.New(memengine.New(nil), nil)
	t.Cleanup(func() { closed(t, c) })
	api := server.New(c, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, r)
		if r.URL.Path == "/v1/messages" && !bytes.Contains(body, []byte(`"replace"`)) {
			pushed()
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(s.Close)
	return s.URL, c
}

func askRedis(redis *redistest.Server, args ...string) *rueidis.RedisMessage {
	m := redis.Do(args...)
	return &m
}

func numberIn(redis *redistest.Server, args ...string) int64 {
	n, err := askRedis(redis, args...).AsInt64()
	if err != nil {
		return -1
	}
	return n
}

// keysOf returns the keys of the scheduled and ready messages of a queue.
func keysOf(t *testing.T, c *tarry.Client, queue string) (keys []string) {
	t.Helper()
	for _, state := range []tarry.State{tarry.Scheduled, tarry.Ready} {
		for m, err := range c.List(t.Context(), queue, state) {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, m.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// moved1 runs a copy with --json from one source, and returns its result.
func moved1(t *testing.T, code int, args ...string) map[string]any {
	t.Helper()
	o := world{}.tarry(t, append(append([]string{"copy"}, args...), "--json")...)
	if o.code != code {
		t.Fatalf("copy %q: exit code %d\n%s", args, o.code, o.stderr)
	}
	return object(t, o.stdout)
}

func counted1(t *testing.T, got map[string]any, want string) {
	t.Helper()
	delete(got, "from")
	maps.DeleteFunc(got, func(_ string, n any) bool { return n == 0.0 })
	if b, _ := json.Marshal(got); string(b) != want {
		t.Errorf("the result is %s, want %s", b, want)
	}
}

func TestCopyZSet(t *testing.T) {
	redis := redistest.Start(t)
	to, c := hooked(t, func() {})
	soon, far := time.Now().Add(5*time.Second).UnixMilli(), time.Now().Add(time.Hour).UnixMilli()
	for member, score := range map[string]int64{"soon": soon, "ann": far, "bob": far + 1, "\xff": far + 2} {
		redis.Do("ZADD", "delayed", strconv.FormatInt(score, 10), member)
		redis.Do("HSET", "mail:"+member, "text", `{"to":"`+strings.ToValidUTF8(member, "?")+`"}`)
	}
	redis.Do("ZADD", "delayed", strconv.FormatInt(far, 10), "none", "inf", "never")
	redis.Do("HSET", "mail:never", "text", "x")
	args := []string{"zset", redis.URL(), to, "mail", "--set", "delayed", "--per-second", "1000", "--body", "mail:{}#text"}

	counted1(t, moved1(t, exitFailed, append(args, "--dry-run")...), `{"copied":4,"refused":2}`)
	if n := len(keysOf(t, c, "mail")); n != 0 {
		t.Fatalf("a dry run made %d messages", n)
	}
	counted1(t, moved1(t, exitFailed, args...), `{"copied":4,"refused":2}`)
	counted1(t, moved1(t, exitFailed, args...), `{"kept":4,"refused":2}`)
	m, err := c.Get(t.Context(), tarry.ByKey("ann").Of("mail"))
	if err != nil || string(m.Body) != `{"to":"ann"}` || m.ContentType != "application/json" || m.Due.UnixMilli() != far || m.Policy.Remember != 24*time.Hour {
		t.Errorf("%+v, %v", m, err)
	}
	if n := numberIn(redis, "ZCARD", "delayed"); n != 6 {
		t.Errorf("a copy left %d members", n)
	}

	counted1(t, moved1(t, exitFailed, append(args, "--move")...), `{"kept":3,"refused":2,"soon":1}`)
	left, _ := askRedis(redis, "ZRANGE", "delayed", "0", "-1").AsStrSlice()
	bodies, _ := askRedis(redis, "KEYS", "mail:*").AsStrSlice()
	slices.Sort(bodies)
	if !slices.Equal(left, []string{"soon", "none", "never"}) || !slices.Equal(bodies, []string{"mail:never", "mail:soon"}) {
		t.Errorf("a move left %q and %q", left, bodies)
	}
	if keys := keysOf(t, c, "mail"); len(keys) != 4 || !slices.Contains(keys, "ann") || !slices.Contains(keys, "a8100ae6aa1940d0b663bb31cd466142ebbdbd5187131b92d93818987832eb89") {
		t.Errorf("there are the keys %q", keys)
	}
}

// Members are their own bodies; those of another set are in one hash, or in texts.
func TestCopyZSetBodies(t *testing.T) {
	redis := redistest.Start(t)
	to, c := hooked(t, func() {})
	at := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	redis.Do("HSET", "bodies", "b", "in a hash", "other", "stays")
	redis.Do("SET", "text:c", "in a text")
	for member, pattern := range map[string]string{"a": "", "b": "bodies#{}", "c": "text:{}"} {
		redis.Do("ZADD", "z"+member, at+".25", member)
		counted1(t, moved1(t, exitOK, "zset", redis.URL(), to, "q", "--set", "z"+member, "--per-second", "1", "--body", pattern, "--move"), `{"copied":1}`)
	}
	for key, body := range map[string]string{"a": "a", "b": "in a hash", "c": "in a text"} {
		if m, err := c.Get(t.Context(), tarry.ByKey(key).Of("q")); err != nil || string(m.Body) != body || m.Due.UnixMilli()%1000 != 250 {
			t.Errorf("%s: %+v, %v", key, m, err)
		}
	}
	if keys, _ := askRedis(redis, "KEYS", "*").AsStrSlice(); !slices.Equal(keys, []string{"bodies"}) || numberIn(redis, "HLEN", "bodies") != 1 {
		t.Errorf("there are still %q", keys)
	}
}

// A set of a Redis Cluster is wherever it is; a body must be in its slot.
func TestMoveFromACluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	url := "redis://" + cluster.Nodes[0].Addr()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{cluster.Nodes[0].Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	to, c := hooked(t, func() {})
	for _, set := range []string{"a", "b", "c", "{d}:due"} {
		for _, command := range [][]string{{"ZADD", set, fmt.Sprint(time.Now().Add(time.Hour).Unix()), set}, {"SET", "{" + set + "}:body", "x"}, {"SET", "{d}:body:" + set, "x"}} {
			if err := client.Do(t.Context(), client.B().Arbitrary(command[0]).Keys(command[1]).Args(command[2:]...).Build()).Error(); err != nil {
				t.Fatal(err)
			}
		}
		body := map[bool]string{false: "{{}}:body", true: "{d}:body:{}"}[set == "{d}:due"]
		counted1(t, moved1(t, exitOK, "zset", url, to, "q", "--set", set, "--per-second", "1", "--body", body, "--move"), `{"copied":1}`)
	}
	if keys := keysOf(t, c, "q"); !slices.Equal(keys, []string{"a", "b", "c", "{d}:due"}) {
		t.Errorf("there are the keys %q", keys)
	}
}

// While it is moved, its own workers take and change what is in a set: each entry then is in one
// place alone.
func TestMoveOfALiveZSet(t *testing.T) {
	redis := redistest.Start(t)
	const n = 2000
	due := time.Now().Add(time.Hour).Unix()
	all := []string{"ZADD", "delayed"}
	for i := range n {
		all = append(all, fmt.Sprint(due+int64(i)), fmt.Sprint("m", i))
	}
	redis.Do(all...)
	var taken []string
	later := make(map[string]int64) // those put off meanwhile, and to when
	to, c := hooked(t, func() {
		popped, err := askRedis(redis, "ZPOPMIN", "delayed", "7").AsZScores()
		if err != nil {
			t.Error(err)
		}
		for _, m := range popped {
			taken = append(taken, m.Member)
		}
		some, _ := askRedis(redis, "ZRANDMEMBER", "delayed", "30").AsStrSlice()
		for _, m := range some {
			later[m] = due + int64(n+len(later))
			redis.Do("ZADD", "delayed", fmt.Sprint(later[m]), m)
		}
	})
	args := []string{"zset", redis.URL(), to, "q", "--set", "delayed", "--per-second", "1", "--move"}
	got := moved1(t, exitOK, args...)
	if keys := keysOf(t, c, "q"); got["gone"] == nil || got["gone"].(float64) == 0 || got["copied"] != float64(len(keys)) {
		t.Errorf("of what was taken meanwhile, %d are copied: %v", len(keys), got)
	}
	left, _ := askRedis(redis, "ZRANGE", "delayed", "0", "-1").AsStrSlice()
	once(t, n, keysOf(t, c, "q"), taken, left)
	for key, at := range later {
		if m, err := c.Get(t.Context(), tarry.ByKey(key).Of("q")); err == nil && m.Due.Unix() != at {
			t.Errorf("%s was put off to %d, and is due %d", key, at, m.Due.Unix())
		}
	}
	moved1(t, exitOK, args...)
	left, _ = askRedis(redis, "ZRANGE", "delayed", "0", "-1").AsStrSlice()
	once(t, n, keysOf(t, c, "q"), taken, left)
}

// once fails the test unless the places together have m0 to mN-1, each once.
func once(t *testing.T, n int, places ...[]string) {
	t.Helper()
	all := slices.Concat(places...)
	slices.Sort(all)
	want := make([]string, n)
	for i := range want {
		want[i] = fmt.Sprint("m", i)
	}
	slices.Sort(want)
	if !slices.Equal(all, want) {
		t.Errorf("%d entries, of them %d different, are in %d places; there were %d", len(all), len(slices.Compact(all)), len(places), n)
	}
}

// Killed after a push, before the removal, it is run again.
func TestMoveIsKilled(t *testing.T) {
	redis := redistest.Start(t)
	const n = 1200
	var cmd *exec.Cmd
	var kill sync.Once
	killed := make(chan struct{})
	to, c := hooked(t, func() {
		kill.Do(func() {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait()
			close(killed)
		})
	})
	all := []string{"ZADD", "delayed"}
	for i := range n {
		all = append(all, fmt.Sprint(time.Now().Add(time.Hour).Unix()), fmt.Sprint("m", i))
	}
	redis.Do(all...)
	args := []string{"zset", redis.URL(), to, "q", "--set", "delayed", "--per-second", "1", "--move"}
	cmd = exec.Command(os.Args[0], append([]string{"copy"}, args...)...)
	cmd.Env = append(os.Environ(), "TARRY_TEST_MAIN=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-killed:
	case <-time.After(patience):
		t.Fatal("it pushes nothing")
	}
	pushed := len(keysOf(t, c, "q"))
	if left := numberIn(redis, "ZCARD", "delayed"); pushed == 0 || left != n {
		t.Fatalf("%d were pushed before it was killed, %d are left", pushed, left)
	}
	// One of those is handled meanwhile: its key is remembered.
	if _, err := c.Reschedule(t.Context(), tarry.ByKey(keysOf(t, c, "q")[0]).Of("q"), tarry.In(0)); err != nil {
		t.Fatal(err)
	}
	got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: patience})
	if err != nil || len(got.Messages) != 1 {
		t.Fatal(got, err)
	}
	if r, err := c.Settle(t.Context(), []tarry.Settlement{{Token: got.Messages[0].Token, Do: tarry.DoAck}}); err != nil || r[0].Err != nil {
		t.Fatal(r, err)
	}
	counted1(t, moved1(t, exitOK, args...), fmt.Sprintf(`{"copied":%d,"kept":%d}`, n-pushed, pushed))
	if left := numberIn(redis, "ZCARD", "delayed"); left != 0 {
		t.Errorf("%d are left", left)
	}
	once(t, n, keysOf(t, c, "q"), []string{got.Messages[0].Key})
}

// An entry whose key has another message, or that TO cannot cancel any more, is told of.
func TestMoveTellsOfConflicts(t *testing.T) {
	redis := redistest.Start(t)
	far := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	take := func() {}
	to, c := hooked(t, func() { take() })
	redis.Do("ZADD", "delayed", far, "other")
	redis.Do("SET", "body:other", "mine")
	if _, err := c.Push(t.Context(), "q", []byte("yours"), tarry.Key("other"), tarry.In(time.Hour)); err != nil {
		t.Fatal(err)
	}
	args := []string{"zset", redis.URL(), to, "q", "--set", "delayed", "--per-second", "1", "--move"}
	o := world{}.tarry(t, append(append([]string{"copy"}, args...), "--body", "body:{}")...)
	if o.code != exitFailed || !strings.Contains(o.stderr, "delayed: other: TO has another message with the key other\n") || numberIn(redis, "EXISTS", "body:other") != 1 {
		t.Errorf("%+v", o)
	}
	redis.Do("DEL", "delayed")
	redis.Do("ZADD", "delayed", far, "twice")
	take = func() {
		redis.Do("ZREM", "delayed", "twice")
		if _, err := c.Reschedule(t.Context(), tarry.ByKey("twice").Of("q"), tarry.In(0)); err != nil {
			t.Error(err)
		}
		if got, err := c.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1, Wait: patience}); err != nil || len(got.Messages) != 1 {
			t.Error(got, err)
		}
	}
	o = world{}.tarry(t, append([]string{"copy"}, args...)...)
	if o.code != exitFailed || !strings.Contains(o.stderr, "delayed: twice: it was taken both in FROM and in TO") {
		t.Errorf("%+v", o)
	}
}

// What TO has no room for stays in FROM; what it has taken does not.
func TestMoveToAFullStore(t *testing.T) {
	redis := redistest.Start(t)
	for i := range 5 {
		redis.Do("ZADD", "delayed", fmt.Sprint(time.Now().Add(time.Hour).Unix()), fmt.Sprint("m", i))
	}
	dir := filepath.Join(t.TempDir(), "data")
	run1(t, world{}, step{args: "copy zset " + redis.URL() + " disk:" + dir + "?max_pending=2 q --set delayed --per-second 1 --move",
		code: exitFailed, stdout: `FROM .*\ndelayed  2  0  0  0  0\n`, stderr: `tarry: .*limit.*\n`})
	left, _ := askRedis(redis, "ZRANGE", "delayed", "0", "-1").AsStrSlice()
	c := opened(t, "disk:"+dir)
	defer closed(t, c)
	once(t, 5, left, keysOf(t, c, "q"))
}

func database(t *testing.T, name string) (of string, db *sql.DB) {
	t.Helper()
	if name == "mysql" {
		of = mysqltest.Shared(t)
		return of, mysqltest.Open(t, of)
	}
	of = pgtest.Shared(t)
	db, err := sql.Open("pgx", of)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return of, db
}

func do(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func texts(t *testing.T, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

func TestCopyTable(t *testing.T) {
	for name, d := range map[string]struct{ due, body, micro, number string }{
		"postgres": {"timestamp", "jsonb", "timestamptz", "to_timestamp(ms / 1000.0)"},
		"mysql":    {"datetime(3)", "json", "timestamp(6) NULL", "from_unixtime(ms / 1000)"},
	} {
		t.Run(name, func(t *testing.T) {
			from, db := database(t, name)
			to, c := hooked(t, func() {})
			do(t, db, "CREATE TABLE timers (id varchar(40) PRIMARY KEY, due "+d.due+", again "+d.micro+", ms bigint, body "+d.body+", state int NOT NULL, ref varchar(40))")
			do(t, db, `INSERT INTO timers VALUES ('b', '2100-01-02 03:04:05.250', '2036-01-02 03:04:05.250001', 2083467845250, '{"a": 1}', 0, 'bob'),
				('a', '2100-01-02 03:04:05', NULL, 1, '2', 0, 'ann'), ('c', NULL, NULL, 1, '3', 0, 'cat'), ('d', '2100-01-01', NULL, 1, '4', 1, 'dan'), ('e', '1999-01-01', NULL, 1, '5', 0, 'eve'), ('f', '2100-01-01', NULL, 1, '6', 0, NULL)`)
			args := []string{"table", from, to, "q", "--table", "timers", "--due", "due", "--body", "body", "--key", "ref", "--where", "state = 0"}
			counted1(t, moved1(t, exitFailed, args...), `{"copied":3,"refused":2}`)
			for _, due := range []string{"again", d.number} { // rounded up to the millisecond
				counted1(t, moved1(t, exitOK, "table", from, to, due[:5], "--table", "timers", "--due", due, "--body", "body", "--where", "id = 'b'"), `{"copied":1}`)
			}
			for queue, want := range map[string]string{"q": "2100-01-02T03:04:05.25Z", "again": "2036-01-02T03:04:05.251Z", d.number[:5]: "2036-01-09T05:04:05.25Z"} {
				key := map[bool]string{true: "bob", false: "b"}[queue == "q"]
				if m, err := c.Get(t.Context(), tarry.ByKey(key).Of(queue)); err != nil || m.Due.UTC().Format(time.RFC3339Nano) != want || string(m.Body) != `{"a": 1}` {
					t.Errorf("%s: %+v, %v", queue, m, err)
				}
			}
			counted1(t, moved1(t, exitFailed, append(args, "--move", "--mark", "state = 9")...), `{"kept":2,"refused":2,"soon":1}`)
			counted1(t, moved1(t, exitFailed, append(args, "--move")...), `{"refused":2,"soon":1}`)
			if got := texts(t, db, "SELECT concat(id, state) FROM timers ORDER BY id"); !slices.Equal(got, []string{"a9", "b9", "c0", "d1", "e0", "f0"}) {
				t.Errorf("the table has %q", got)
			}
		})
	}
}

// While it is moved, a poller and others take and change rows.
func TestMoveOfALiveTable(t *testing.T) {
	for _, name := range []string{"postgres", "mysql"} {
		t.Run(name, func(t *testing.T) {
			from, db := database(t, name)
			const n = 1700
			do(t, db, "CREATE TABLE live (id int PRIMARY KEY, due timestamp NOT NULL, state int NOT NULL)")
			var rows []string
			for i := range n {
				rows = append(rows, fmt.Sprintf("(%d, '2036-01-02 03:04:05', 0)", i))
			}
			do(t, db, "INSERT INTO live VALUES "+strings.Join(rows, ","))
			call := 0
			var taken []string
			to, c := hooked(t, func() {
				taken = append(taken, texts(t, db, fmt.Sprintf("SELECT concat('m', id) FROM live WHERE id %% 100 = %d AND state = 0", call))...)
				do(t, db, fmt.Sprintf("UPDATE live SET state = 1 WHERE id %% 100 = %d AND state = 0", call))
				do(t, db, fmt.Sprintf("UPDATE live SET due = '2036-02-02 03:04:05' WHERE id %% 100 = %d AND state = 0", call+50))
				call++
			})
			args := []string{"table", from, to, "q", "--table", "live", "--due", "due", "--body", "id", "--where", "state = 0", "--move"}
			args = append(args, "--key", "concat('m', id)")
			got := moved1(t, exitOK, args...)
			if call != 4 || got["gone"] == 0.0 {
				t.Errorf("%d pushes, %v", call, got)
			}
			waiting := "SELECT concat('m', id) FROM live WHERE state = 0"
			once(t, n, keysOf(t, c, "q"), taken, texts(t, db, waiting))
			counted1(t, moved1(t, exitOK, args...), `{"copied":17}`) // what was changed while it was pushed
			once(t, n, keysOf(t, c, "q"), taken, texts(t, db, waiting))
			if all := texts(t, db, "SELECT id FROM live"); len(all) != len(taken) {
				t.Errorf("the table has %d rows, of which %d were taken", len(all), len(taken))
			}
		})
	}
}

func TestCopyOfOthersRefuses(t *testing.T) {
	redis := redistest.Start(t)
	dir := filepath.Join(t.TempDir(), "new")
	to := "disk:" + dir
	secret := url.UserPassword("u", "secret")
	for _, s := range []step{
		{args: "copy asynq", code: exitUsage, stderr: `tarry: FROM is missing .*\n`},
		{args: "copy zset " + redis.URL() + " " + to, code: exitUsage, stderr: `tarry: QUEUE is missing .*\n`},
		{args: "copy zset " + redis.URL() + " " + to + " q --set x", code: exitUsage, stderr: `tarry: --set or --per-second is missing .*\n`},
		{args: "copy zset " + redis.URL() + " " + to + " q --set x --per-second -1", code: exitUsage, stderr: `tarry: --set or --per-second is missing .*\n`},
		{args: "copy table postgres://127.0.0.1:1/x " + to + " q --table x", code: exitUsage, stderr: `tarry: --table, --due or --body is missing .*\n`},
		{args: "copy table postgres://127.0.0.1:1/x " + to + " q --table x --due y --body z", code: exitUnavailable, stderr: `tarry: open: .*127.0.0.1:1.*\n`},
		{args: "copy table mysql://" + secret.String() + "@127.0.0.1:1/x " + to + " q --table x --due y --body z", code: exitUnavailable, stderr: `tarry: open: .*127.0.0.1:1.*\n`},
		{args: "copy table mysql://" + secret.String() + "@127.0.0.1:1/x?tls=none " + to + " q --table x --due y --body z", code: exitUsage, stderr: `tarry: open: .*the database to copy from is like.*\n`},
		{args: "copy table " + redis.URL() + " " + to + " q --table x --due y --body z", code: exitUsage, stderr: `tarry: open: .*the database to copy from is like.*\n`},
		{args: "copy asynq redis://127.0.0.1:1 " + to, code: exitUnavailable, stderr: `tarry: open: .*check that FROM runs at 127.0.0.1:1.*\n`},
		{args: "copy asynq redis://" + secret.String() + "@127.0.0.1:6379/a " + to, code: exitUsage, stderr: `tarry: open: .*the Redis to copy from is like.*\n`},
		{args: "copy asynq " + redis.URL() + " " + to + " --dry-run", stdout: `FROM .*\n`},
		{args: "copy asynq " + redis.URL() + " " + to + " none --dry-run", stdout: `FROM .*\nnone  0 .*\n`},
	} {
		run1(t, world{}, s)
		if o := (world{}).tarry(t, strings.Fields(s.args)...); strings.Contains(o.stderr, "secret") {
			t.Errorf("%s tells the password: %s", s.args, o.stderr)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s was made", dir)
	}
}

// An interrupt between a push and the removal waits for the removal.
func TestMoveIsInterrupted(t *testing.T) {
	redis := redistest.Start(t)
	const n = 1500
	all := []string{"ZADD", "delayed"}
	for i := range n {
		all = append(all, fmt.Sprint(time.Now().Add(time.Hour).Unix()), fmt.Sprint("m", i))
	}
	redis.Do(all...)
	ctx, interrupt := context.WithCancel(t.Context())
	to, c := hooked(t, interrupt)
	var stdout, stderr strings.Builder
	p := world{}.program(&stdout, &stderr, "copy", "zset", redis.URL(), to, "q", "--set", "delayed", "--per-second", "1", "--move")
	if code := p.Run(ctx); code != exitFailed || stderr.String() != "tarry: interrupted\n" && stderr.String() != "interrupted\n" {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	left, _ := askRedis(redis, "ZRANGE", "delayed", "0", "-1").AsStrSlice()
	if len(left) == 0 {
		t.Error("it went on")
	}
	once(t, n, left, keysOf(t, c, "q"))
}
