package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func newFile(t *testing.T) File {
	t.Helper()
	return File(filepath.Join(t.TempDir(), "tokens.json"))
}

func create(t *testing.T, f File, tok Token) (Token, string) {
	t.Helper()
	made, secret, err := f.Create(tok, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return made, secret
}

func TestFile(t *testing.T) {
	f := newFile(t)
	shop, secret := create(t, f, Token{Name: "shop", Scopes: Push | Read, Queues: []string{"order.*", "mail"}, Expires: time.Now().Add(time.Hour)})
	create(t, f, Token{Name: "ann@office", Scopes: Admin, Queues: []string{"*"}})
	all, err := f.Read()
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	if got := all[0]; fmt.Sprint(got) != fmt.Sprint(shop) || !got.proves(secret) || got.proves(secret+"x") || all[1].proves(secret) || idOf(secret) != got.ID {
		t.Errorf("%+v, want %+v", got, shop)
	}
	data, _ := os.ReadFile(string(f))
	if strings.Contains(string(data), secret) || strings.Contains(string(data), secret[len(secret)-20:]) {
		t.Errorf("the file holds a token: %s", data)
	}
	if info, err := os.Stat(string(f)); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, _, err := f.Create(Token{Name: "shop", Scopes: Push, Queues: []string{"*"}}, time.Now()); err == nil || !strings.Contains(err.Error(), "already, with the id "+shop.ID) {
		t.Error(err)
	}
	create(t, f, Token{Name: "later", Scopes: Push, Queues: []string{"*"}})
	if _, _, err := f.Create(Token{Name: "shop", Scopes: Push, Queues: []string{"*"}}, time.Now().Add(2*time.Hour)); err != nil {
		t.Errorf("the name of one that has expired: %v", err)
	}
	if gone, err := f.Revoke("shop"); err != nil || len(gone) != 2 {
		t.Errorf("%v, %v", gone, err)
	}
	if gone, err := f.Revoke(all[1].ID); err != nil || len(gone) != 1 || gone[0].Name != "ann@office" {
		t.Errorf("%v, %v", gone, err)
	}
	if _, err := f.Revoke("ann@office"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if all, err := f.Read(); err != nil || len(all) != 1 || all[0].Name != "later" {
		t.Errorf("%v, %v", all, err)
	}
	if left, _ := filepath.Glob(string(f) + ".*"); left != nil {
		t.Errorf("left behind: %s", left)
	}
}

// Of many who change it at a time each either does, or is told that he has not.
func TestFileChangedByMany(t *testing.T) {
	f := newFile(t)
	var wg sync.WaitGroup
	made := make(chan string, 20)
	for i := range cap(made) {
		wg.Go(func() {
			name := fmt.Sprintf("t%d", i)
			for {
				_, _, err := f.Create(Token{Name: name, Scopes: Push, Queues: []string{"*"}}, time.Now())
				if err == nil {
					made <- name
					return
				}
				if !strings.Contains(err.Error(), "somebody is changing") {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if all, err := f.Read(); err != nil || len(all) != cap(made) {
		t.Errorf("%d tokens, %v", len(all), err)
	}
}

func TestTokensThatWillNotDo(t *testing.T) {
	f := newFile(t)
	for want, tok := range map[string]Token{
		`the name "" is not 1 to 64`:           {Scopes: Push, Queues: []string{"*"}},
		`the name "a b" is not 1 to 64`:        {Name: "a b", Scopes: Push, Queues: []string{"*"}},
		"it has no scope":                      {Name: "a", Queues: []string{"*"}},
		"it has no queues":                     {Name: "a", Scopes: Push},
		`the queues "a b": `:                   {Name: "a", Scopes: Push, Queues: []string{"*", "a b"}},
		"it would be expired already":          {Name: "a", Scopes: Push, Queues: []string{"*"}, Expires: time.Now()},
		`the name "` + strings.Repeat("a", 60): {Name: strings.Repeat("a", 65), Scopes: Push, Queues: []string{"*"}},
	} {
		if _, _, err := f.Create(tok, time.Now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := os.Stat(string(f)); err == nil {
		t.Error("a file was made for nothing")
	}
}

func TestFilesThatWillNotDo(t *testing.T) {
	const hash = `"hash":"sha256:0000000000000000000000000000000000000000000000000000000000000000"`
	for content, want := range map[string]string{
		``:                        "is not a file of tokens",
		`[]`:                      "is not a file of tokens",
		`{"tokens":[],"more":1}`:  "is not a file of tokens",
		`{"tokens":[{}]}`:         "token 1: it has no id",
		`{"tokens":[{"id":"a"}]}`: "token 1: its hash is not",
		`{"tokens":[{"id":"a","name":"n",` + hash + `,"scopes":["all"],"queues":["*"]}]}`:                                                                      `token 1: unknown scope "all"`,
		`{"tokens":[{"id":"a","name":"n",` + hash + `,"scopes":[],"queues":["*"]}]}`:                                                                           "token 1: it has no scope",
		`{"tokens":[{"id":"a","name":"n",` + hash + `,"scopes":["push"],"queues":["*"]},{"id":"a","name":"n",` + hash + `,"scopes":["push"],"queues":["*"]}]}`: "token 2: another has its id",
	} {
		f := newFile(t)
		if err := os.WriteFile(string(f), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Read(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", content, err, want)
		}
	}
	f := newFile(t)
	create(t, f, Token{Name: "a", Scopes: Push, Queues: []string{"*"}})
	for _, mode := range []os.FileMode{0o644, 0o604, 0o620, 0o666} {
		if err := os.Chmod(string(f), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Read(); err == nil || !strings.Contains(err.Error(), "others may read or write") || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

func TestMay(t *testing.T) {
	tok := &Token{Scopes: Push | Operate, Queues: []string{"order.*", "mail"}}
	admin := &Token{Scopes: Admin, Queues: []string{"*"}}
	for _, c := range []struct {
		token *Token
		scope Scope
		queue string
		want  bool
	}{
		{tok, Push, "order.paid", true}, {tok, Push, "mail", true}, {tok, Push, "mails", false}, {tok, Push, "xmail", false},
		{tok, Work, "mail", false}, {tok, Read, "mail", false}, {tok, Operate, "mail", true}, {tok, Admin, "mail", false},
		{tok, Work | Operate, "mail", true}, {tok, Push, "other", false}, {tok, Push, "", false},
		{admin, Work, "any", true}, {admin, Push | Read, "tarry.schedules", false},
	} {
		if got := c.token.May(c.scope, c.queue); got != c.want {
			t.Errorf("%s of %v on %s: %v", c.scope, c.token.Queues, c.queue, got)
		}
	}
	if tok.MayAll(Push) || !admin.MayAll(Read) || !tok.Has(Push) || tok.Has(Read) {
		t.Error("of all queues, or of any, it is told wrongly")
	}
}

// request is one with a token from an address.
func request(secret, from string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = from
	r.Header.Set("Authorization", "Bearer "+secret)
	return r
}

func TestGuardFollowsItsFile(t *testing.T) {
	f := newFile(t)
	_, first := create(t, f, Token{Name: "first", Scopes: Push, Queues: []string{"*"}})
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		g, err := NewGuard(f, &GuardConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		known := func(name, secret string, want bool) {
			t.Helper()
			tok, err := g.Who(request(secret, "192.0.2.1:1"))
			if (err == nil) != want || want && g.Current(tok) == nil {
				t.Errorf("known: %v, want %v", err, want)
			}
			if by, err := g.BySecret(secret); by != tok || (err == nil) != want {
				t.Errorf("by its secret: %v, %v, want %v", by, err, tok)
			}
			if by, err := g.BySecret(secret + "x"); err == nil {
				t.Errorf("by another secret: %v", by)
			}
			if by, err := g.ByName(name); by != tok || (err == nil) != want {
				t.Errorf("by its name: %v, %v, want %v", by, err, tok)
			}
		}
		time.Sleep(time.Second)
		known("first", first, true)
		tok, _ := g.Who(request(first, ""))
		second := ""
		_, second, err = f.Create(Token{Name: "second", Scopes: Push, Queues: []string{"*"}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		known("second", second, true)
		if _, err := f.Revoke("first"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		known("first", first, false)
		if g.Current(tok) != nil {
			t.Error("what was revoked is still good")
		}
		if err := os.Chmod(string(f), 0o644); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		known("second", second, true)
		if !strings.Contains(log.String(), "others may read or write") || !strings.Contains(log.String(), "stay as they were") {
			t.Errorf("logged was %s", &log)
		}
	})
}

// A file that is away for a moment, as an editor has it, revokes nothing; one that is
// gone revokes all tokens, and not in silence.
func TestGuardOfAFileThatIsGone(t *testing.T) {
	f := newFile(t)
	_, secret := create(t, f, Token{Name: "a", Scopes: Push, Queues: []string{"*"}})
	data, err := os.ReadFile(string(f))
	if err != nil {
		t.Fatal(err)
	}
	var log, audit bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		g, err := NewGuard(f, &GuardConfig{Logger: slog.New(slog.NewTextHandler(&log, nil)), Audit: NewAudit(&audit)})
		if err != nil {
			t.Fatal(err)
		}
		good := func(want, trouble bool) {
			t.Helper()
			_, err := g.Who(request(secret, ""))
			if (err == nil) != want || g.Closed() == want || (g.Trouble() != nil) != trouble {
				t.Errorf("%v, closed %v, %v", err, g.Closed(), g.Trouble())
			}
		}
		remove := func() {
			t.Helper()
			if err := os.Remove(string(f)); err != nil {
				t.Fatal(err)
			}
		}
		restore := func() {
			t.Helper()
			if err := os.WriteFile(string(f), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		tok, _ := g.Who(request(secret, ""))
		remove()
		time.Sleep(time.Second)
		good(true, true)
		restore()
		time.Sleep(time.Second)
		good(true, false)
		if audit.Len() != 0 {
			t.Errorf("audited was %s", &audit)
		}
		remove()
		time.Sleep(time.Second)
		good(true, true)
		time.Sleep(goneGrace)
		good(false, true)
		if g.Current(tok) != nil {
			t.Error("a long poll goes on")
		}
		_, err = g.Who(request(secret, ""))
		_, named := g.ByName("a")
		for _, err := range []error{err, named} {
			if err == nil || err.Error() != "no token is known here: the file of tokens is gone" {
				t.Error(err)
			}
		}
		if !strings.Contains(audit.String(), `"what":"token revoke","token":"a"`) || !strings.Contains(log.String(), "all its tokens are revoked") {
			t.Errorf("audited was %s, logged %s", &audit, &log)
		}
		restore()
		time.Sleep(time.Second)
		good(true, false)
		if !strings.Contains(audit.String(), `"what":"token create","token":"a"`) {
			t.Errorf("audited was %s", &audit)
		}
	})
}

func TestExpiry(t *testing.T) {
	f := newFile(t)
	synctest.Test(t, func(t *testing.T) {
		_, secret := create(t, f, Token{Name: "a", Scopes: Push, Queues: []string{"*"}, Expires: time.Now().Add(time.Hour)})
		g, err := NewGuard(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := g.Who(request(secret, ""))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if _, err := g.Who(request(secret, "")); err == nil || err.Error() != "the token a expired at 2000-01-01T01:00:00Z" {
			t.Error(err)
		}
		if g.Current(tok) != nil {
			t.Error("what has expired is still good")
		}
		if _, err := g.ByName("a"); err == nil || err.Error() != `there is no valid token of the name "a"` {
			t.Error(err)
		}
		renewed, _ := create(t, f, Token{Name: "a", Scopes: Push, Queues: []string{"*"}})
		g.Refresh()
		if tok, err := g.ByName("a"); err != nil || tok.ID != renewed.ID {
			t.Errorf("the new one of the name: %v, %v", tok, err)
		}
	})
}

// Failures are held up the longer the more there were, and never beyond a second or
// their context; other hosts are not, and after a minute it begins anew.
func TestFailuresAreHeldUp(t *testing.T) {
	f := newFile(t)
	create(t, f, Token{Name: "a", Scopes: Push, Queues: []string{"*"}})
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		g, err := NewGuard(f, &GuardConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		fail := func(ctx context.Context, from string) time.Duration {
			began := time.Now()
			g.Refused(ctx, from, errors.New("so it is"))
			return time.Since(began)
		}
		want := []time.Duration{0, 0, 0, 50, 100, 200, 400, 800, 1000, 1000}
		for i, w := range want {
			if got := fail(t.Context(), fmt.Sprintf("192.0.2.1:%d", i)); got != w*time.Millisecond {
				t.Errorf("failure %d was held up for %s", i+1, got)
			}
		}
		if got := strings.Count(log.String(), "\n"); got != 4 { // 1, 2, 4, 8
			t.Errorf("%d lines were logged: %s", got, &log)
		}
		if !strings.Contains(log.String(), "failures=8 not_told=3") { // 5, 6, 7
			t.Errorf("it is not told how many were left out: %s", &log)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if got := fail(ended, "192.0.2.1:1"); got != 0 {
			t.Errorf("one whose client has gone was held up for %s", got)
		}
		if got := fail(t.Context(), "192.0.2.2:1"); got != 0 {
			t.Errorf("another host was held up for %s", got)
		}
		for i := range 5 {
			fail(t.Context(), fmt.Sprintf("[2001:db8::%d]:1", i))
		}
		if got := fail(t.Context(), "[2001:db8::9]:1"); got != 200*time.Millisecond {
			t.Errorf("another address of a host was held up for %s", got)
		}
		time.Sleep(forgetAfter)
		if got := fail(t.Context(), "192.0.2.1:1"); got != 0 {
			t.Errorf("after a minute it was held up for %s", got)
		}
		var wg sync.WaitGroup
		began := time.Now()
		for range 3 * mostWaiting {
			wg.Go(func() { fail(t.Context(), "192.0.2.3:1") })
		}
		synctest.Wait()
		g.fails.mu.Lock()
		waiting := g.fails.waiting
		g.fails.mu.Unlock()
		if waiting != mostWaiting {
			t.Errorf("%d are held up at a time", waiting)
		}
		wg.Wait()
		if took := time.Since(began); took > mostDelay || g.fails.waiting != 0 {
			t.Errorf("it took %s, and %d are held up", took, g.fails.waiting)
		}
	})
}

func TestHostsAreBounded(t *testing.T) {
	var f failures
	now := time.Now()
	for i := range mostHosts + 100 {
		_, _, done := f.add(fmt.Sprintf("10.%d.%d.%d:1", i>>16&255, i>>8&255, i&255), now)
		done()
	}
	if len(f.hosts) > mostHosts+1 {
		t.Errorf("%d hosts are remembered", len(f.hosts))
	}
	f.sweep(now.Add(forgetAfter))
	if len(f.hosts) != 0 {
		t.Errorf("%d hosts are not forgotten", len(f.hosts))
	}
}

func FuzzBearer(f *testing.F) {
	f.Add("Bearer tarry_a_b")
	f.Add("bearer  x")
	f.Add("")
	f.Fuzz(func(t *testing.T, header string) {
		r := &http.Request{Header: http.Header{"Authorization": {header}}}
		secret, err := bearer(r)
		if err == nil {
			idOf(secret)
		} else if secret != "" || (len(header) > 20 && strings.Contains(err.Error(), header)) {
			t.Errorf("%q: %q, %v", header, secret, err)
		}
	})
}
