package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
	"github.com/tarryhq/tarry/server"
)

// at is a world whose commands work on a store, or a server.
func at(store string) world {
	if strings.HasPrefix(store, "http:") {
		return world{env: []string{"TARRY_SERVER=" + store}}
	}
	return world{env: []string{"TARRY_STORE=" + store}}
}

// waiting is what waits in a queue, in its order, without what a copy cannot keep.
func waiting(t *testing.T, store, queue string, states ...string) (all []map[string]any) {
	t.Helper()
	for _, state := range states {
		out := at(store).must(t, "ls", queue, "--state", state, "--limit", "0", "--body", "--json")
		for line := range strings.Lines(out) {
			m := object(t, line)
			for _, lost := range []string{"id", "created", "attempt", "died", "last_error", "failures"} {
				delete(m, lost)
			}
			all = append(all, m)
		}
	}
	return all
}

// opened is a client of a store, for what no command can do.
func opened(t *testing.T, store string) *tarry.Client {
	t.Helper()
	c, err := tarry.Open(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func closed(t *testing.T, c *tarry.Client) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// stock puts into a store one of all that there is to copy or to leave.
func stock(t *testing.T, store string) {
	t.Helper()
	w := at(store)
	w.must(t, "push", "mail", `{"to": "ann"}`, "--key", "ann", "--at", "2126-01-02T15:04:05.678Z", "--priority", "7", "--header", "trace=42", "--header", "a=b",
		"--max-attempts", "3", "--backoff", "15s,30s", "--ttr", "10s", "--expire-after", "7d", "--remember", "1d")
	w.must(t, "push", "mail", "ready", "--content-type", "text/x; a=b")
	w.must(t, "push", "mail", "at its end", "--key", "gone", "--remember", "1h", "--in", "1h")
	w.must(t, "cancel", "mail", "gone")
	w.must(t, "push", "slow", "x", "--in", "1h")
	w.must(t, "queue", "set", "slow", "--max-attempts", "5", "--rate", "10", "--max-pending", "1")
	w.must(t, "pause", "slow")
	w.must(t, "pause", "soon", "--for", "1h")

	c := opened(t, store)
	defer closed(t, c)
	for _, body := range []string{"dead", "leased", "tried"} {
		if _, err := c.Push(t.Context(), "work", []byte(body), tarry.ExpireAfter(24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		got, err := c.LeaseNow(t.Context(), []engine.Want{{Queue: "work", Max: 1, TTR: time.Hour, Remote: true}})
		if err != nil {
			t.Fatal(err)
		}
		s := tarry.Settlement{Token: got.Queues[0].Messages[0].Token}
		switch body {
		case "dead":
			s.Do, s.Reason = tarry.DoBury, "no such order"
		case "tried":
			s.Do, s.When = tarry.DoRetry, &tarry.When{In: time.Hour}
		default:
			continue
		}
		if r, err := c.Settle(t.Context(), []tarry.Settlement{s}); err != nil || r[0].Err != nil {
			t.Fatal(err, r)
		}
	}
}

func TestCopy(t *testing.T) {
	for name, pair := range map[string][2]string{
		"to another":    {"disk:old", "disk:new"},
		"from a server": {"served", "disk:new"},
		"to a server":   {"disk:old", "served"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			pair := serve(t, pair)
			copies(t, pair[0], pair[1])
		})
	}
}

// serve puts servers of their own in the places of stores that are to be served.
func serve(t *testing.T, pair [2]string) [2]string {
	t.Helper()
	for i := range pair {
		if pair[i] == "served" {
			w, _ := served(t, "mem:")
			pair[i], _ = w.program(nil, nil).env("TARRY_SERVER")
		}
	}
	return pair
}

func copies(t *testing.T, from, to string) {
	stock(t, from)
	const (
		mail = `mail  2  0  0  0  0  -  -  1 remembered\n`
		slow = `slow  1  0  0  0  0  copied  copied  -\n`
		soon = `soon  0  0  0  0  0  -  copied  -\n`
		work = `work  1  0  0  0  0  -  -  1 leased, 1 dead\n`
		said = ` 4 messages of 4 queues; 1 begin again with attempt 0; left in FROM: 1 leased, 1 dead, 1 remembered\n`
		head = `QUEUE  COPIED  KEPT  REFUSED  EXPIRED  DEAD  SETTINGS  PAUSE  LEFT\n`
	)
	w := world{}
	run1(t, w, step{args: "copy --dry-run " + from + " " + to, stdout: head + mail + slow + soon + work, stderr: "would copy" + said})
	run1(t, w, step{args: "copy " + from + " " + to, stdout: head + mail + slow + soon + work, stderr: "copied" + said})
	for _, queue := range []string{"mail", "slow", "soon", "work"} {
		want, got := waiting(t, from, queue, "scheduled", "ready"), waiting(t, to, queue, "scheduled", "ready")
		if queue == "work" { // the retry has moved the due time away from the expiry
			left, err := time.ParseDuration(got[0]["expire_after"].(string))
			if err != nil || left <= 22*time.Hour || left >= 24*time.Hour {
				t.Errorf("expires after %v, %v", left, err)
			}
			delete(want[0], "expire_after")
			delete(got[0], "expire_after")
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s has\n%v\nof\n%v", queue, got, want)
		}
	}
	if want, got := at(from).must(t, "queue", "get", "slow", "--json"), at(to).must(t, "queue", "get", "slow", "--json"); !reflect.DeepEqual(object(t, got)["settings"], object(t, want)["settings"]) {
		t.Errorf("the settings are %s, of %s", got, want)
	}
	want, got := at(from).must(t, "queues", "slow", "soon", "--json"), at(to).must(t, "queues", "slow", "soon", "--json")
	for i, line := range strings.Split(strings.TrimSpace(got), "\n") {
		if was := object(t, strings.Split(want, "\n")[i]); object(t, line)["paused"] != true || (object(t, line)["paused_until"] == nil) != (was["paused_until"] == nil) {
			t.Errorf("%s, of %v", line, was)
		}
	}

	// Again: what has a key is there once, what has none is so refused.
	run1(t, w, step{args: "copy " + from + " " + to, code: exitUsage, stderr: `tarry: the queue mail holds 2 messages in TO \(--merge .*\)\n`})
	run1(t, w, step{args: "copy --merge --json " + from + " " + to + " mail slow", stdout: `` +
		`{"queue":"mail","outcome":"copied","copied":1,"kept":1,.*"unkeyed":1,.*}\n` +
		`{"queue":"slow",.*"copied":0,.*"pause":"kept".*}\n`,
		code: exitFailed, stderr: `.*limit.*\n`})
}

// What falls due while it is copied is there once, whatever falls due how fast.
func TestCopyOfWhatFallsDueMeanwhile(t *testing.T) {
	t.Chdir(t.TempDir())
	w, _ := served(t, "mem:")
	from, _ := w.program(nil, nil).env("TARRY_SERVER")
	const n = 4000
	c := opened(t, from)
	drafts := make([]tarry.Draft, n)
	now := time.Now()
	for i := range drafts {
		drafts[i] = tarry.NewDraft("q", fmt.Append(nil, i), tarry.At(now.Add(time.Duration(i)*200*time.Microsecond)))
	}
	if _, err := c.PushMany(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}
	closed(t, c)
	w.must(t, "copy", from, "disk:new")
	to := opened(t, "disk:new")
	defer closed(t, to)
	q, err := to.Queue(t.Context(), "q")
	if err != nil || q.Scheduled+q.Ready != n {
		t.Errorf("%d messages of %d were copied, %v", q.Scheduled+q.Ready, n, err)
	}
	seen := make(map[string]bool)
	for left := q.Scheduled + q.Ready; left > 0; {
		got, err := to.Lease(t.Context(), tarry.LeaseRequest{Queues: []string{"q"}, Max: 1000, Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.Messages {
			seen[string(m.Body)] = true
			left--
		}
	}
	if len(seen) != n {
		t.Errorf("%d different messages of %d", len(seen), n)
	}
}

// A copy that was cut is taken up again.
func TestCopyIsTakenUpAgain(t *testing.T) {
	t.Chdir(t.TempDir())
	c := opened(t, "disk:old")
	for i := range 5 {
		if _, err := c.Push(t.Context(), "q", []byte("x"), tarry.Key(fmt.Sprint("k", i)), tarry.In(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Push(t.Context(), "q", []byte("x")); err != nil {
		t.Fatal(err)
	}
	closed(t, c)
	run1(t, world{}, step{args: "copy disk:old disk:new?max_pending=3", code: exitFailed, stdout: `QUEUE .*\nq  3  0 .*`,
		stderr: `tarry: .*limit.*; 3 messages were copied before, 0 without a key: run it again with --merge.*\n`})
	run1(t, world{}, step{args: "copy disk:old disk:new --merge", stdout: `QUEUE .*\nq  3  3  0 .*`, stderr: "copied 3 messages of 1 queue; 3 kept as TO has them\n"})
	if got := waiting(t, "disk:new", "q", "scheduled", "ready"); len(got) != 6 {
		t.Errorf("there are %v", got)
	}
}

// What one store refuses is told, and does not hold up the rest.
func TestCopyTellsWhatIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	c := opened(t, "disk:old")
	drafts := []tarry.Draft{tarry.NewDraft("q", []byte("x")), tarry.NewDraft("q", make([]byte, 2000))}
	if _, err := c.PushMany(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}
	closed(t, c)
	s := world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--max-body", "1000")
	to := s.stdout.await(t, `listens on (http://\S+)\n`)[1]
	o := world{}.tarry(t, "copy", "disk:old", to, "--json")
	if m := object(t, o.stdout); o.code != exitFailed || m["copied"] != 1.0 || m["refused"] != 1.0 || !strings.Contains(o.stderr, "1 message was refused; the first: tarry: push q: too large") {
		t.Errorf("%+v", o)
	}
}

func TestCopyRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	at("disk:old").must(t, "push", "mail", "x", "--key", "k", "--in", "1h")
	if err := os.WriteFile("url", []byte("disk:made\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	token := world{env: []string{"TARRY_TOKEN=tarry_x"}}
	run1(t, token, step{args: "copy http://127.0.0.1:1 http://127.0.0.1:2", code: exitUsage, stderr: `tarry: there is one token for two servers .*\n`})
	for _, s := range []step{
		{args: "copy", code: exitUsage, stderr: `tarry: FROM is missing .*\n`},
		{args: "copy disk:old", code: exitUsage, stderr: `tarry: TO is missing .*\n`},
		{args: "copy disk:old disk:old", code: exitUsage, stderr: `tarry: FROM and TO are the same .*\n`},
		{args: "copy old disk:new", code: exitUsage, stderr: `tarry: FROM and TO are URLs of stores .*\n`},
		{args: "copy @none disk:new", code: exitUsage, stderr: `tarry: @none: .*no such file.*\n`},
		{args: "copy disk:old disk:new ma!l", code: exitUsage, stderr: `tarry: copy .*byte 3 of the queue's name.*\n`},
		{args: "copy disk:none disk:new", code: exitNotFound, stderr: `tarry: copy: not found .there is no store in none.\n`},
		{args: "copy disk:old http://127.0.0.1:1", code: exitUnavailable, stderr: `tarry: open: .*is it running.*\n`},
		{args: "copy disk:old @url --dry-run", stdout: `QUEUE .*\nmail  1 .*`, stderr: "would copy 1 message of 1 queue\n"},
	} {
		run1(t, world{}, s)
	}
	for _, dir := range []string{"none", "new", "made"} {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s was made", dir)
		}
	}
	run1(t, world{}, step{args: "copy disk:old @url --settings=false mail", stdout: `QUEUE .*\nmail  1 .*`, stderr: "copied 1 message of 1 queue\n"})
	if entries, err := os.ReadDir(filepath.Join(".", "made")); err != nil || len(entries) == 0 {
		t.Errorf("made: %v", err)
	}
}

// Dead messages come out dead, in their order, each with its last error.
func TestCopyOfTheDead(t *testing.T) {
	for name, pair := range map[string][2]string{"disk": {"served", "disk:new"}, "server": {"served", "served"}} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			pair := serve(t, pair)
			const n = deadChunk + 20
			c := opened(t, pair[0])
			for i := range n { // the same keys again and again, also that of a live message
				o := []tarry.PushOption{tarry.Priority(uint32(1000 - i)), tarry.ExpireAfter(time.Hour), tarry.MaxAttempts(3), tarry.Header("h", "v")}
				if i%3 > 0 {
					o = append(o, tarry.Key(fmt.Sprint("k", i%40)))
				}
				if _, err := c.Push(t.Context(), "q", fmt.Append(nil, i), o...); err != nil {
					t.Fatal(err)
				}
				got, err := c.LeaseNow(t.Context(), []engine.Want{{Queue: "q", Max: 1}})
				if err != nil {
					t.Fatal(err)
				}
				s := tarry.Settlement{Token: got.Queues[0].Messages[0].Token, Do: tarry.DoBury, Reason: fmt.Sprint("failed ", i)}
				if r, err := c.Settle(t.Context(), []tarry.Settlement{s}); err != nil || r[0].Err != nil {
					t.Fatal(err, r)
				}
			}
			if _, err := c.Push(t.Context(), "q", []byte("live"), tarry.Key("k1"), tarry.In(time.Hour)); err != nil {
				t.Fatal(err)
			}
			closed(t, c)
			run1(t, world{}, step{args: "copy --dead --dry-run " + pair[0] + " " + pair[1], stdout: `QUEUE .*\nq  1  0  0  0  120  -  -  -\n`, stderr: `would copy 1 message of 1 queue; 120 dead copied\n`})
			run1(t, world{}, step{args: "copy --dead " + pair[0] + " " + pair[1], stdout: `QUEUE .*\nq  1  0  0  0  120  -  -  -\n`, stderr: `copied 1 message of 1 queue; 120 dead copied\n`})
			lines := strings.Split(strings.TrimSpace(at(pair[1]).must(t, "ls", "q", "--state", "dead", "--limit", "0", "--body", "--json")), "\n")
			if len(lines) != n {
				t.Fatalf("%d are dead, of %d", len(lines), n)
			}
			for i, line := range lines {
				m := object(t, line)
				key := ""
				if i%3 > 0 {
					key = fmt.Sprint("k", i%40)
				}
				if m["last_error"] != fmt.Sprint("failed ", i) || m["key"] != key || m["max_attempts"] != 3.0 || m["priority"] != float64(1000-i) {
					t.Errorf("the dead message %d is %s", i, line)
				}
			}
			run1(t, world{}, step{args: "copy --dead --merge " + pair[0] + " " + pair[1], stdout: `QUEUE .*\nq  0  1  0  0  0  -  -  120 dead\n`, stderr: `copied 0 .*left in FROM: 120 dead\n`})
		})
	}
}

// RabbitMQ can be read by nobody, and keeps neither keys nor priorities.
func TestCopyAndRabbitMQ(t *testing.T) {
	t.Chdir(t.TempDir())
	rabbit := rabbittest.Shared(t)
	at("disk:old").must(t, "push", "copied", "x", "--key", "k", "--priority", "1", "--in", "1h")
	at("disk:old").must(t, "push", "copied", "x")
	run1(t, world{}, step{args: "copy " + rabbit + " disk:new", code: exitFailed, stderr: `tarry: copy: .*FROM cannot be read.*\n`})
	run1(t, world{}, step{args: "copy disk:old " + rabbit, code: exitUsage, stderr: `tarry: the engine rabbit cannot tell whether TO holds something .--merge.*\n`})
	run1(t, world{}, step{args: "copy disk:old --merge " + rabbit, code: exitFailed, stderr: `tarry: copy: .*has no keys, priorities, expire_after, remember; --lossy copies without.*\n`})
	run1(t, world{}, step{args: "copy disk:old --merge --lossy " + rabbit, stdout: `QUEUE .*\ncopied  2 .*`, stderr: `copied 2 messages of 1 queue; 1 lost what TO has not\n`})

	redis := redistest.Start(t)
	redis.Do("ZADD", "delayed", fmt.Sprint(time.Now().Add(time.Hour).Unix()), "x")
	o := world{}.tarry(t, "copy", "zset", redis.URL(), rabbit, "q", "--set", "delayed", "--per-second", "1", "--move")
	if o.code != exitFailed || !strings.Contains(o.stderr, "delayed: x: tarry: push q") || numberIn(redis, "ZCARD", "delayed") != 1 {
		t.Errorf("without keys it moves: %+v", o)
	}
}

func TestDraftOfWhatExpiresBeforeItIsDue(t *testing.T) {
	due := time.Now()
	for left, ok := range map[time.Duration]bool{-time.Second: false, 0: false, time.Second: true} {
		m := tarry.Info{Due: due, Expires: due.Add(left), Policy: engine.Policy{ExpireAfter: time.Hour}}
		d, copied := draftOf(&m)
		if copied != ok || ok && d.ExpireAfter != left {
			t.Errorf("%s before its expiry: %v, %v", left, d.ExpireAfter, copied)
		}
	}
}

// The JSON of a queue has what docs/cli.md says.
func TestCopiedInTheDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## copy\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, result := range []any{copied{}, sourceCopied{}} {
		line, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		for name := range object(t, string(line)) {
			if !strings.Contains(section, "`"+name+"`") {
				t.Errorf("docs/cli.md says nothing of %s", name)
			}
		}
	}
}

func TestCopyToDatabases(t *testing.T) {
	for name, to := range map[string]string{"postgres": pgtest.Shared(t), "mysql": mysqltest.Shared(t)} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			at(to).must(t, "migrate", "up")
			copies(t, "disk:old", to)
		})
	}
}

// An interrupt between two pages ends a copy, and tells how far it has come.
func TestCopyIsInterrupted(t *testing.T) {
	from, _ := served(t, "mem:")
	source, _ := from.program(nil, nil).env("TARRY_SERVER")
	to := tarry.New(memengine.New(nil), nil)
	t.Cleanup(func() { closed(t, to) })
	api, copied := server.New(to, nil), make(chan struct{})
	var once sync.Once
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q, err := to.Queue(r.Context(), "q"); err == nil && q.Scheduled > 1000 { // some calls were answered
			once.Do(func() { close(copied) })
			_, _ = io.Copy(io.Discard, r.Body) // else nobody notices that the client leaves
			<-r.Context().Done()
			return
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(sink.Close)
	c := opened(t, source)
	drafts := make([]tarry.Draft, 10_000)
	for i := range drafts {
		drafts[i] = tarry.NewDraft("q", make([]byte, 1000), tarry.In(time.Hour))
	}
	for range 2 {
		if _, err := c.PushMany(t.Context(), drafts); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, c)
	r := world{}.start(t, "copy", source, sink.URL)
	select {
	case <-copied:
	case <-time.After(patience):
		t.Fatalf("it copies nothing: %s", r.stderr)
	}
	if code := r.stop(t); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	r.stderr.await(t, `tarry: interrupted; \d+ messages were copied before, \d+ without a key \(run it again with --merge.*those without would be there twice: empty TO first\)\n`)
}
