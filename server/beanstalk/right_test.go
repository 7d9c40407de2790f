package beanstalk

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/server/access"
)

// tokens makes a guard, and returns the secrets of its tokens by name.
func tokens(t *testing.T, all ...access.Token) (*access.Guard, access.File, map[string]string) {
	t.Helper()
	file := access.File(filepath.Join(t.TempDir(), "tokens.json"))
	secrets := make(map[string]string)
	for _, tok := range all {
		_, secret, err := file.Create(tok, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		secrets[tok.Name] = secret
	}
	g, err := access.NewGuard(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g, file, secrets
}

func TestWithoutAToken(t *testing.T) {
	g, file, secrets := tokens(t, access.Token{Name: "all", Scopes: access.Admin, Queues: []string{"*"}})
	f := serve(t, &Config{Guard: g})
	c := f.dial(t)
	for _, command := range []string{
		"put 0 0 60 3\r\nuse", "use a", "watch a", "ignore a", "reserve", "reserve-with-timeout 1", "reserve-job 1", "delete 1", "release 1 0 0", "bury 1 0",
		"touch 1", "kick 1", "kick-job 1", "peek 1", "peek-ready", "peek-delayed", "peek-buried", "stats", "stats-job 1", "stats-tube default", "list-tubes",
		"list-tube-used", "list-tubes-watched", "pause-tube default 1", "nonsense", "auth tarry_a_b", "auth ",
	} {
		c.wants(command, "UNAUTHORIZED")
	}
	if f.Counts().Refused < 27 {
		t.Errorf("%d are counted as refused", f.Counts().Refused)
	}
	c.wants("auth "+secrets["all"], "AUTHORIZED")
	c.wants("use a", "USING a")
	c.wants("delete "+c.put(0, 0, 60, 1), "DELETED")
	if _, err := file.Revoke("all"); err != nil {
		t.Fatal(err)
	}
	g.Refresh()
	c.wants("use b", "UNAUTHORIZED")
	c.wants("quit", "EOF")
}

// TestStrangersAreCut: who has no token does not hold a connection for long; who has one does.
func TestStrangersAreCut(t *testing.T) {
	g, _, secrets := tokens(t, access.Token{Name: "all", Scopes: access.Admin, Queues: []string{"*"}})
	const most = time.Second
	f := serve(t, &Config{Guard: g}, func(s *Server) { s.limits.read = most })
	known, quiet, part, waits := f.dial(t), f.dial(t), f.dial(t), f.dial(t)
	waits.send("auth " + secrets["all"] + "\r\nreserve\r\n")
	if got := waits.line(); got != "AUTHORIZED" {
		t.Error(got)
	}
	known.wants("list-tube-used", "UNAUTHORIZED")
	known.wants("auth "+secrets["all"], "AUTHORIZED")
	part.send("list-tu")
	for _, c := range []*client{quiet, part} {
		if got := c.line(); got != "EOF" {
			t.Errorf("it gets %q", got)
		}
	}
	time.Sleep(3 * most / 2) // longer than it may rest without a token
	known.wants("list-tube-used", "USING default")
	id := known.put(0, 0, 60, 1)
	if got := waits.answer(); got != "RESERVED "+id+" 1" {
		t.Error(got)
	}
}

func TestRights(t *testing.T) {
	g, _, secrets := tokens(t,
		access.Token{Name: "pusher", Scopes: access.Push, Queues: []string{"a"}},
		access.Token{Name: "worker", Scopes: access.Work, Queues: []string{"a"}},
		access.Token{Name: "reader", Scopes: access.Read, Queues: []string{"a"}},
		access.Token{Name: "boss", Scopes: access.Operate, Queues: []string{"a"}},
	)
	var log bytes.Buffer
	audit := access.NewAudit(&log)
	f := serve(t, &Config{Guard: g, As: "pusher", Audit: audit})
	as := func(name string) *client {
		c := f.dial(t)
		if name != "" {
			c.wants("auth "+secrets[name], "AUTHORIZED")
		}
		c.wants("use a", "USING a")
		c.wants("watch a", "WATCHING 2")
		if name == "worker" {
			c.wants("reserve-with-timeout 0", "FORBIDDEN") // of default too
		}
		c.wants("ignore default", "WATCHING 1")
		return c
	}
	clients := map[string]*client{"": as(""), "pusher": as("pusher"), "worker": as("worker"), "reader": as("reader"), "boss": as("boss")}
	for _, try := range []struct{ command, may, want string }{
		{"put 0 0 60 1\r\nx", "pusher", "INSERTED"},
		{"reserve-with-timeout 0", "worker", "RESERVED"},
		{"touch %", "worker", "TOUCHED"},
		{"release % 0 0", "worker", "RELEASED"},
		{"reserve-job %", "worker", "RESERVED"},
		{"bury % 0", "worker", "BURIED"},
		{"peek %", "reader", "FOUND"},
		{"peek-ready", "reader", "NOT_FOUND"},
		{"peek-delayed", "reader", "NOT_FOUND"},
		{"peek-buried", "reader", "FOUND"},
		{"stats", "reader", "OK"},
		{"stats-job %", "reader", "OK"},
		{"stats-tube a", "reader", "OK"},
		{"kick-job %", "boss", "KICKED"},
		{"kick 1", "boss", "KICKED 0"},
		{"pause-tube a 0", "boss", "PAUSED"},
	} {
		p := clients["pusher"]
		id := p.put(0, 0, 60, 1)
		w := clients["worker"]
		switch verb, _, _ := strings.Cut(try.command, " "); verb {
		case "touch", "release", "bury":
			w.wants("reserve-job "+id, "RESERVED")
		case "kick-job", "peek-buried":
			w.wants("reserve-job "+id, "RESERVED")
			w.wants("bury "+id+" 0", "BURIED")
		case "peek-ready", "kick":
			p.wants("delete "+id, "DELETED")
		}
		command := strings.Replace(try.command, "%", id, 1)
		for name, c := range clients {
			holds := strings.HasPrefix(command, "touch") || strings.HasPrefix(command, "release") || strings.HasPrefix(command, "bury")
			if name != try.may && !(name == "" && try.may == "pusher") && !(holds && name != "worker") {
				c.wants(command, "FORBIDDEN")
			}
		}
		clients[try.may].wants(command, try.want)
		w.do("delete " + id)
		p.do("delete " + id)
	}
	b := clients["boss"]
	// Whether a tube exists is not told either.
	clients["reader"].wants("stats-tube none", "FORBIDDEN")
	b.wants("pause-tube none 1", "FORBIDDEN")
	id := clients[""].put(0, 0, 60, 1)
	clients["reader"].wants("delete "+id, "FORBIDDEN")
	b.wants("delete "+id, "DELETED")
	if got := clients["boss"].do("list-tubes"); got != "OK 4" { // none that it may read
		t.Error(got)
	}
	audit.Close()
	for _, want := range []string{
		`"what":"cancel","who":"boss"`, `"what":"resume","who":"boss"`, `"what":"redrive","who":"boss"`, `"result":"ok"`, `"what":"resume","who":"reader"`, `"result":"forbidden"`, `"queue":"a"`, `"message":"` + id,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s is not in the audit log: %s", want, &log)
		}
	}
	if strings.Contains(log.String(), `"what":"cancel","who":"pusher"`) {
		t.Error("a delete by a pusher is audited")
	}
}

// TestRevokedWhileWaiting: a token that is revoked while its connection waits gets no job.
func TestRevokedWhileWaiting(t *testing.T) {
	g, file, secrets := tokens(t, access.Token{Name: "all", Scopes: access.Admin, Queues: []string{"*"}}, access.Token{Name: "other", Scopes: access.Admin, Queues: []string{"*"}})
	f := serve(t, &Config{Guard: g})
	c, other := f.dial(t), f.dial(t)
	c.wants("auth "+secrets["all"], "AUTHORIZED")
	other.wants("auth "+secrets["other"], "AUTHORIZED")
	c.send("reserve\r\n")
	f.waiting(t, 1)
	if _, err := file.Revoke("all"); err != nil {
		t.Fatal(err)
	}
	g.Refresh()
	id := other.put(0, 0, 60, 1)
	if got := c.answer(); got != "FORBIDDEN" {
		t.Error(got)
	}
	other.wants("reserve-with-timeout 5", "RESERVED "+id)
}

func TestAuthWithoutTokens(t *testing.T) { serve(t, nil).dial(t).wants("auth x", "UNKNOWN_COMMAND") }

func TestAsNeedsAGuard(t *testing.T) {
	f := serve(t, nil)
	if _, err := New(f.c, &Config{As: "a"}); err == nil {
		t.Error("it is taken")
	}
}
