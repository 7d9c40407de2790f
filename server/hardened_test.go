package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server/access"
)

// What a token may no longer lease, it does not get by a poll that began before.
func TestAPollEndsWithTheRight(t *testing.T) {
	g := newGuarded(t)
	worker := g.create("worker", access.Work, []string{"theirs"}, time.Time{})
	admin := g.create("root", access.Admin, []string{"*"}, time.Time{})
	g.audit.Reset()
	code := make(chan int, 1)
	go func() { code <- g.ask(worker, "POST", "/v1/lease", `{"queues":["theirs"],"wait":"30s"}`).Code }()
	for g.waits.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	data, err := os.ReadFile(string(g.file))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(string(g.file), []byte(strings.Replace(string(data), `"theirs"`, `"no.longer"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	g.guard.Refresh()
	g.ask(admin, "POST", "/v1/queues/theirs/messages", `{"body":1}`)
	if got := <-code; got != 403 {
		t.Errorf("the poll is answered with %d", got)
	}
	if w := g.ask(admin, "POST", "/v1/lease", `{"queues":["theirs"]}`); !strings.Contains(w.Body.String(), `"attempt":1`) {
		t.Errorf("what it had leased was not given back: %s", w.Body)
	}
	for _, line := range []string{`"token create","token":"worker"`, `"no.longer"`, `"token revoke","token":"worker"`} {
		if !strings.Contains(g.audit.String(), line) {
			t.Errorf("the audit log has no %s:\n%s", line, g.audit)
		}
	}
}

type panicking struct{ *memengine.Engine }

func (panicking) Purge(context.Context, string, engine.PurgeAlso) (int64, error) { panic("boom") }

func TestTheAuditLogTellsWhatPanicked(t *testing.T) {
	g := newGuarded(t)
	admin := g.create("root", access.Admin, []string{"*"}, time.Time{})
	c := tarry.New(panicking{memengine.New(nil)}, nil)
	t.Cleanup(func() {
		_ = c.Close()
		_ = c.Engine().Close()
	})
	g.Server = New(c, &Config{Guard: g.guard, Audit: access.NewAudit(g.audit)})
	g.ask(admin, "POST", "/v1/queues/q/purge", `{}`)
	if !strings.Contains(g.audit.String(), `"what":"purge","who":"root"`) || !strings.Contains(g.audit.String(), `"result":"internal"`) {
		t.Error(g.audit)
	}
}

var errNoRoom = errors.New("no space left on device")

// noRoom is a log on a full disk.
type noRoom struct{}

func (noRoom) Write([]byte) (int, error) { return 0, errNoRoom }

// An audit log that cannot be written stops no operator, but whoever has a token learns
// of it.
func TestTheAuditLogCannotBeWritten(t *testing.T) {
	g := newGuarded(t)
	operator := g.create("ann", access.Operate, []string{"q"}, time.Time{})
	audit, log, lost := access.NewAudit(noRoom{}), new(bytes.Buffer), 0
	audit.Logger, audit.Lost = slog.New(slog.NewTextHandler(log, nil)), func() { lost++ }
	g.Server = New(g.c, &Config{Guard: g.guard, Audit: audit})
	if w := g.ask(operator, "POST", "/v1/queues/q/pause", ""); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), `\"what\":\"pause\",\"who\":\"ann\"`) || lost != 1 {
		t.Errorf("%d lost, logged was %s", lost, log)
	}
	if w := g.ask(operator, "GET", "/readyz", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `{"status":"ready","problems":[{"problem":"server","message":"the audit log cannot be written: no space left on device; lines missing: 1","hint":`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := g.ask("", "GET", "/readyz", ""); w.Code != 200 || w.Body.String() != `{"status":"ready"}` {
		t.Errorf("without a token: %d %s", w.Code, w.Body)
	}
}

// A file of tokens that cannot be read is told to those with a token; one that is gone
// lets nobody in, and everybody learns why.
func TestReadyzTellsOfTheTokens(t *testing.T) {
	g := newGuarded(t)
	mine := g.create("ann", access.Read, []string{"*"}, time.Time{})
	data, err := os.ReadFile(string(g.file))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(string(g.file), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.guard.Refresh()
	if w := g.ask(mine, "GET", "/readyz", ""); w.Code != 200 || !strings.Contains(w.Body.String(), "the tokens cannot be read again") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := g.ask("", "GET", "/readyz", ""); w.Code != 200 || strings.Contains(w.Body.String(), "problems") {
		t.Errorf("without a token: %d %s", w.Code, w.Body)
	}
	if err := os.WriteFile(string(g.file), data, 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var err error
		if g.guard, err = access.NewGuard(g.file, &access.GuardConfig{Logger: slog.New(slog.DiscardHandler)}); err != nil {
			t.Fatal(err)
		}
		e := memengine.New(nil)
		c := tarry.New(e, nil)
		defer e.Close()
		defer c.Close()
		g.Server = New(c, &Config{Guard: g.guard})
		if err := os.Remove(string(g.file)); err != nil {
			t.Fatal(err)
		}
		g.guard.Refresh()
		time.Sleep(6 * time.Second)
		for _, secret := range []string{mine, ""} {
			if w := g.ask(secret, "GET", "/readyz", ""); w.Code != 503 || !strings.Contains(w.Body.String(), "the file of tokens is gone") || strings.Contains(w.Body.String(), string(g.file)) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
		if w := g.ask(mine, "GET", "/v1/queues", ""); w.Code != 401 || !strings.Contains(w.Body.String(), "the file of tokens is gone") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// listening serves until the test ends.
func listening(t *testing.T, s interface {
	Serve(ctx context.Context, ln net.Listener) error
}) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		_ = s.Serve(ctx, ln)
		close(over)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
	return ln.Addr().String()
}

func send(t *testing.T, address, request string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	fmt.Fprint(c, request)
	return c
}

// Who has no token does not hold a connection by a body that never comes.
func TestNoTokenHoldsNoConnection(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	address := listening(t, New(g.c, &Config{Guard: g.guard, ReadTimeout: time.Hour, ShutdownTimeout: time.Millisecond}))
	asked := make(map[string]net.Conn)
	for _, request := range []string{"POST /v1/lease HTTP/1.1\r\nHost: localhost", "POST /v1/lease HTTP/1.1\r\nHost: elsewhere.example", "POST /v1/nothing HTTP/1.1\r\nHost: localhost", "PATCH /v1/lease HTTP/1.1\r\nHost: localhost"} {
		asked[request] = send(t, address, request+"\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n")
	}
	for request, c := range asked {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if line, err := bufio.NewReader(c).ReadString('\n'); !strings.Contains(line, " 40") {
			t.Errorf("%s: %q, %v", request, line, err)
		}
	}
}

// Nor does anybody by a body that no handler of ours reads.
func TestBodiesComeInTime(t *testing.T) {
	t.Parallel()
	cfg := &Config{ReadTimeout: time.Millisecond, ShutdownTimeout: time.Millisecond}
	opening, opened := NewOpening(cfg), NewOpening(cfg)
	opened.Opened(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // as the dashboard does
		if r.Method == http.MethodPost {
			_, _ = io.ReadAll(r.Body)
		}
	}))
	for address, request := range map[string]string{listening(t, opening): "GET /healthz", listening(t, opened): "POST /session"} {
		c := send(t, address, request+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if line, err := bufio.NewReader(c).ReadString('\n'); !strings.Contains(line, "200") {
			t.Errorf("%s: %q, %v", request, line, err)
		}
	}
}

// Those who wait for the store leave room for probes.
func TestOpeningAnswersProbesWhenManyWait(t *testing.T) {
	t.Parallel()
	o := NewOpening(&Config{MaxConnections: 8, ShutdownTimeout: time.Millisecond})
	address := listening(t, o)
	for range 8 {
		send(t, address, "GET /v1/info HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	}
	for o.waits.Load() < 7 {
		time.Sleep(time.Millisecond)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); { // the one that was refused may not have gone yet
		if r, err := http.Get("http://" + address + "/healthz"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == 200 {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("no probe is answered")
}

type unreachable struct{ *memengine.Engine }

func (unreachable) Ready(context.Context) error {
	return errors.New("failed to connect to `user=tarry database=prod`: db.internal: refused")
}

// What is wrong with the store may name hosts and users: that is for who has a token.
func TestReadyTellsNobodyOfTheStore(t *testing.T) {
	g := newGuarded(t)
	some := g.create("some", access.Push, []string{"q"}, time.Time{})
	c := tarry.New(unreachable{memengine.New(nil)}, nil)
	t.Cleanup(func() {
		_ = c.Close()
		_ = c.Engine().Close()
	})
	g.Server = New(c, &Config{Guard: g.guard})
	if w := g.ask("", "GET", "/readyz", ""); w.Code != 503 || strings.Contains(w.Body.String(), "db.internal") {
		t.Error(w.Code, w.Body)
	}
	if w := g.ask(some, "GET", "/readyz", ""); w.Code != 503 || !strings.Contains(w.Body.String(), "db.internal") {
		t.Error(w.Code, w.Body)
	}
}
