package ui_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry/server/access"
	"github.com/tarryhq/tarry/ui"
)

// told is an API that tells what it was asked, for who brings the token "good".
func told(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("Authorization") != "Bearer good" {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"code":"unauthorized","message":"no","hint":""}}`)
		return
	}
	if r.URL.Path == "/v1/me" {
		_, _ = io.WriteString(w, `{"name":"ann","scopes":["read"],"queues":["*"],"expires":null}`)
		return
	}
	w.Header().Set("Asked", r.Method+" "+r.URL.EscapedPath()+" "+r.Header.Get("Cookie"))
	if r.URL.Path == "/v1/live" {
		<-r.Context().Done()
	}
}

type viewer struct {
	*testing.T
	h      http.Handler
	cookie *http.Cookie
}

// ask sends a request as a browser of the page's own origin would.
func (v *viewer) ask(method, url, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, strings.NewReader(body))
	r.RequestURI = r.URL.RequestURI()
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if v.cookie != nil {
		r.AddCookie(v.cookie)
	}
	w := httptest.NewRecorder()
	v.h.ServeHTTP(w, r)
	return w
}

func (v *viewer) logIn(url string) {
	v.Helper()
	w := v.ask("POST", url, `{"token":"good"}`)
	if w.Code != 200 || len(w.Result().Cookies()) != 1 {
		v.Fatalf("log in: %d %s %v", w.Code, w.Body, w.Header())
	}
	v.cookie = w.Result().Cookies()[0]
}

func (v *viewer) status(want int, method, url string, headers ...string) *httptest.ResponseRecorder {
	v.Helper()
	w := v.ask(method, url, "", headers...)
	if w.Code != want {
		v.Errorf("%s %s %q: %d, want %d: %s", method, url, headers, w.Code, want, w.Body)
	}
	return w
}

func TestAssets(t *testing.T) {
	v := &viewer{T: t, h: ui.New(http.HandlerFunc(told), nil)}
	page := v.status(200, "GET", "/")
	csp := page.Header().Get("Content-Security-Policy")
	if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") || page.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the page's headers: %v", page.Header())
	}
	if page.Header().Get("Cache-Control") != "no-cache" {
		t.Errorf("the page is kept: %v", page.Header())
	}
	packed, files := 0, 0
	for _, part := range strings.Split(page.Body.String(), `"`) {
		name, ok := strings.CutPrefix(part, "./assets/")
		if !ok {
			continue
		}
		files++
		url := "/assets/" + name
		plain := v.status(200, "GET", url)
		w := v.status(200, "GET", url, "Accept-Encoding", "br;q=1, gzip;q=0.8")
		z, err := gzip.NewReader(bytes.NewReader(w.Body.Bytes()))
		if err != nil || w.Header().Get("Content-Encoding") != "gzip" {
			t.Fatalf("%s: %v %v", url, w.Header(), err)
		}
		packed += w.Body.Len()
		if b, err := io.ReadAll(z); err != nil || !bytes.Equal(b, plain.Body.Bytes()) {
			t.Errorf("%s is another when it was compressed: %v", url, err)
		}
		if !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || plain.Header().Get("ETag") == w.Header().Get("ETag") {
			t.Errorf("%s: %v", url, w.Header())
		}
		if w := v.status(304, "GET", url, "Accept-Encoding", "gzip", "If-None-Match", `"x", W/`+w.Header().Get("ETag")); w.Body.Len() > 0 {
			t.Errorf("%s has a body though nothing changed", url)
		}
		if w := v.status(200, "HEAD", url); w.Body.Len() > 0 {
			t.Errorf("HEAD %s has a body", url)
		}
		v.status(200, "GET", url, "Accept-Encoding", "gzip;q=0")
		v.status(405, "POST", url)
	}
	if files != 4 {
		t.Errorf("the page names %d files", files)
	}
	if page := v.status(200, "GET", "/", "Accept-Encoding", "gzip"); packed+page.Body.Len() > 100<<10 {
		t.Errorf("the pages take %d bytes compressed, more than 100 KiB", packed+page.Body.Len())
	}
	v.status(401, "GET", "/assets/app.js") // it is the API's to say that there is nothing
}

// What is embedded is what the sources give.
func TestDistIsBuiltFromTheSources(t *testing.T) {
	missing := func(what string) {
		if os.Getenv("TARRY_TEST_UI") == "require" {
			t.Fatalf("%s, and TARRY_TEST_UI=require: run make ui", what)
		}
		t.Skipf("%s: whether dist is what the sources give is not tested; make ui installs what builds it", what)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		missing("node is not in the PATH")
	}
	for _, name := range []string{"esbuild", "preact", "@preact/signals", "uplot"} {
		if _, err := os.Stat(filepath.Join("web", "node_modules", name)); err != nil {
			missing(name + " is not in ui/web/node_modules")
		}
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), node, "build.js", dir)
	cmd.Dir = "web"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("node build.js: %v\n%s", err, out)
	}
	made, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadDir("dist")
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != len(kept) {
		t.Errorf("%d files are built, %d are in dist", len(made), len(kept))
	}
	for _, f := range made {
		want, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join("dist", f.Name())); err != nil || !bytes.Equal(got, want) {
			t.Errorf("dist/%s is not what the sources give: run make ui (%v)", f.Name(), err)
		}
	}
}

func TestSession(t *testing.T) {
	v := &viewer{T: t, h: ui.New(http.HandlerFunc(told), nil)}
	if w := v.status(200, "GET", "/session"); w.Body.String() != `{"needed":true,"session":false,"read_only":false,"me":null}` {
		t.Errorf("before: %s", w.Body)
	}
	for _, body := range []string{`{"token":"bad"}`, `{"token":"x y"}`, `{"token":""}`, `{"token":"good","x":1}`, `[`, `{"token":"` + strings.Repeat("x", 8<<10) + `"}`} {
		if w := v.ask("POST", "/session", body); w.Code != 401 && w.Code != 400 || len(w.Result().Cookies()) > 0 {
			t.Errorf("%.40s: %d %v", body, w.Code, w.Header())
		}
	}
	if w := v.ask("POST", "/session", `{"token":"good"}`, "Content-Type", "text/plain"); w.Code != 415 {
		t.Errorf("as plain text: %d", w.Code)
	}
	v.logIn("/session")
	if c := v.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Name != "tarry" || c.Path != "/" || strings.Contains(c.Value, "good") {
		t.Errorf("the cookie: %v", c)
	}
	if w := v.status(200, "GET", "/session"); w.Body.String() != `{"needed":false,"session":true,"read_only":false,"me":{"name":"ann","scopes":["read"],"queues":["*"],"expires":null}}` {
		t.Errorf("then: %s", w.Body)
	}
	if w := v.status(200, "GET", "/v1/queues/a%2Fb"); w.Header().Get("Asked") != "GET /v1/queues/a%2Fb " {
		t.Errorf("the API was asked %q", w.Header().Get("Asked"))
	}
	v.status(401, "GET", "/v1/queues", "Authorization", "Bearer other") // that counts, not the cookie
	for _, foreign := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "http://evil.example"}, {"Origin", "null"}} {
		v.status(403, "POST", "/v1/queues/a/purge", foreign...)
		v.status(403, "DELETE", "/session", foreign...)
		if w := v.ask("POST", "/session", `{"token":"good"}`, foreign...); w.Code != 403 {
			t.Errorf("%q logs in: %d", foreign, w.Code)
		}
	}
	v.status(200, "POST", "/v1/queues/a/purge", "Sec-Fetch-Site", "same-origin", "Origin", "http://example.com")
	v.status(405, "PUT", "/session")
	first := v.cookie
	v.logIn("/session")
	second := v.cookie
	v.cookie = first
	v.status(401, "GET", "/v1/queues") // who logs in anew leaves no session behind
	v.cookie = second
	w := v.status(204, "DELETE", "/session")
	if c := w.Result().Cookies(); len(c) != 1 || c[0].MaxAge >= 0 || c[0].Name != v.cookie.Name || c[0].Path != v.cookie.Path {
		t.Errorf("logged out: %v", c)
	}
	v.status(401, "GET", "/v1/queues") // with the old cookie
}

// The cookie is as strict as the place allows.
func TestCookie(t *testing.T) {
	mounted := func(path string, h http.Handler) http.Handler { return http.StripPrefix(path, h) }
	for _, c := range []struct {
		url  string
		h    http.Handler
		want string
	}{
		{"http://localhost:8277/session", ui.New(http.HandlerFunc(told), nil), "tarry-8277=; Path=/; HttpOnly; SameSite=Strict"},
		{"https://tarry.example.com/session", ui.New(http.HandlerFunc(told), nil), "__Host-tarry=; Path=/; HttpOnly; Secure; SameSite=Strict"},
		{"http://tarry.example.com/session", ui.New(http.HandlerFunc(told), &ui.Config{Secure: true}), "__Host-tarry=; Path=/; HttpOnly; Secure; SameSite=Strict"},
		{"https://[::1]:443/in/here/session", mounted("/in/here", ui.New(http.HandlerFunc(told), nil)), "__Secure-tarry-443=; Path=/in/here/; HttpOnly; Secure; SameSite=Strict"},
		{"http://example.com/in/here/session", ui.New(http.HandlerFunc(told), &ui.Config{Path: "in/here/"}), "tarry=; Path=/in/here/; HttpOnly; SameSite=Strict"},
	} {
		v := &viewer{T: t, h: c.h}
		v.logIn(c.url)
		shown := *v.cookie
		shown.Value = ""
		if shown.String() != c.want {
			t.Errorf("%s: %s, want %s", c.url, shown.String(), c.want)
		}
		v.status(200, "GET", strings.TrimSuffix(c.url, "session")+"v1/queues")
		v.status(204, "DELETE", c.url)
		v.status(401, "GET", strings.TrimSuffix(c.url, "session")+"v1/queues")
	}
}

func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := ui.New(http.HandlerFunc(told), &ui.Config{SessionIdle: time.Hour, SessionMax: 5 * time.Hour, MaxSessions: 3})
		v := &viewer{T: t, h: h}
		v.logIn("/session")
		for range 4 {
			time.Sleep(59 * time.Minute)
			v.status(200, "GET", "/v1/queues")
		}
		live := make(chan struct{})
		go func() {
			defer close(live)
			v.ask("GET", "/v1/live", "")
		}()
		synctest.Wait()
		select {
		case <-live:
			t.Fatal("what happens live is not shown")
		default:
		}
		begun := time.Now()
		<-live // at the end of the session
		if took := time.Since(begun); took != 5*time.Hour-4*59*time.Minute {
			t.Errorf("it was shown for %s", took)
		}
		v.status(401, "GET", "/v1/queues")

		v.logIn("/session")
		time.Sleep(time.Hour)
		v.status(401, "GET", "/v1/queues") // idle

		var all []*http.Cookie
		for range 4 {
			v.cookie = nil
			v.logIn("/session")
			all = append(all, v.cookie)
			time.Sleep(time.Second)
		}
		for i, c := range all {
			v.cookie = c
			v.status(map[bool]int{true: 401, false: 200}[i == 0], "GET", "/v1/queues")
		}
		v.cookie = all[3]
		go v.ask("GET", "/v1/live", "")
		synctest.Wait()
		v.status(204, "DELETE", "/session") // which ends what is shown live, else the bubble would not
		for _, c := range all[1:3] {
			v.cookie = c
			v.status(204, "DELETE", "/session")
		}
		synctest.Wait()
	})
}

// Who logs in again and again logs nobody out who has another token.
func TestSessionsOfOthersStay(t *testing.T) {
	h := ui.New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer better" {
			r.Header.Set("Authorization", "Bearer good")
		}
		told(w, r)
	}), &ui.Config{MaxSessions: 3})
	first := &viewer{T: t, h: h}
	first.cookie = first.ask("POST", "/session", `{"token":"better"}`).Result().Cookies()[0]
	for range 5 {
		(&viewer{T: t, h: h}).logIn("/session")
	}
	first.status(200, "GET", "/v1/queues")
}

func TestReadOnly(t *testing.T) {
	v := &viewer{T: t, h: ui.New(http.HandlerFunc(told), &ui.Config{ReadOnly: true})}
	v.logIn("/session")
	if w := v.status(200, "GET", "/session"); !strings.Contains(w.Body.String(), `"read_only":true`) {
		t.Errorf("%s", w.Body)
	}
	v.status(200, "GET", "/v1/queues")
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		v.status(403, method, "/v1/queues/q")
		v.status(403, method, "/v1/queues/q", "Authorization", "Bearer good")
	}
}

// The page's own addresses rest on the slash at the end of its path.
func TestSlash(t *testing.T) {
	h := ui.New(http.HandlerFunc(told), nil)
	for url, handler := range map[string]http.Handler{
		"/in/here": http.StripPrefix("/in/here", h),
		"/here":    ui.New(http.HandlerFunc(told), &ui.Config{Path: "/here"}),
	} {
		v := &viewer{T: t, h: handler}
		if w := v.status(302, "GET", url); w.Header().Get("Location") != "./here/" {
			t.Errorf("%s: %v", url, w.Header())
		}
		v.status(302, "HEAD", url)
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
			if w := v.status(405, method, url); w.Header().Get("Allow") != "GET, HEAD" || w.Header().Get("Location") != "" ||
				!strings.HasPrefix(w.Body.String(), `{"error":{"code":"invalid","message":"`+method+` is not allowed here"`) {
				t.Errorf("%s %s: %v %s", method, url, w.Header(), w.Body)
			}
		}
		v.status(200, "GET", url+"/")
	}
	root := httptest.NewRequest("GET", "http://localhost", nil) // as proxies ask: there is no path in it
	root.RequestURI = "http://localhost"
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, root); w.Code != 200 {
		t.Errorf("a URL without a path: %d %v", w.Code, w.Header())
	}
	v := &viewer{T: t, h: ui.New(http.HandlerFunc(told), &ui.Config{Path: "/here"})}
	v.status(404, "GET", "/there")
}

// With a real server: rights are its tokens', and it slows who guesses.
func TestWithAServer(t *testing.T) {
	w := newWorld(t, kind{tokens: true, tls: true})
	reader := w.token("reader", access.Read, "mail")
	c := client()
	post := func(url, body, cookie string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if cookie != "" {
			r.Header.Set("Cookie", cookie)
		}
		res, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		return res
	}
	if res := post(w.url+"session", `{"token":"tarry_no"}`, ""); res.StatusCode != 401 {
		t.Errorf("a wrong token: %d", res.StatusCode)
	}
	res := post(w.url+"session", `{"token":"`+reader+`"}`, "")
	if res.StatusCode != 200 || len(res.Cookies()) != 1 || !strings.HasPrefix(res.Cookies()[0].Name, "__Host-tarry-") {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	cookie := res.Cookies()[0].Name + "=" + res.Cookies()[0].Value
	if res := post(w.url+"v1/queues/mail/purge", "{}", cookie); res.StatusCode != 403 {
		t.Errorf("a reader purges: %d", res.StatusCode)
	}
	if _, err := w.file.Revoke("reader"); err != nil {
		t.Fatal(err)
	}
	w.guard.Refresh()
	if res := post(w.url+"v1/queues/mail/purge", "{}", cookie); res.StatusCode != 401 {
		t.Errorf("a token that was revoked: %d", res.StatusCode)
	}
}
