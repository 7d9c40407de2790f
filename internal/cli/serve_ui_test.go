package cli

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// The dashboard is at /, and when it is read-only the API is not for other clients.
func TestServeDashboard(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		args := []string{"serve", "--store", "mem:", "--http", "127.0.0.1:0"}
		if readOnly {
			args = append(args, "--ui-read-only")
		}
		s := world{}.start(t, args...)
		url := s.stdout.await(t, `dashboard: (http://\S+/)\n`)[1]
		if status, body, err := fetch(t, url); err != nil || status != 200 || !strings.Contains(string(body), "<title>tarry</title>") {
			t.Errorf("%d %s %v", status, body, err)
		}
		push := func(origin string) int {
			r, err := http.NewRequestWithContext(t.Context(), "POST", url+"v1/queues/mail/messages", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			if origin != "" {
				r.Header.Set("Origin", origin)
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			return res.StatusCode
		}
		want := 201
		if readOnly {
			want = 403
		}
		if status := push(strings.TrimSuffix(url, "/")); status != want {
			t.Errorf("read-only %t: a page pushes: %d", readOnly, status)
		}
		if status := push(""); status != 201 {
			t.Errorf("read-only %t: a client pushes: %d", readOnly, status)
		}
	}
}

// Behind a proxy that ends TLS the cookie of a session is for TLS alone, if told so.
func TestServeSecureCookie(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	secret := strings.Fields(world{}.must(t, "token", "create", "ann", "--scope", "read", "--tokens", tokens))
	for _, secure := range []bool{false, true} {
		args := []string{"serve", "--store", "mem:", "--http", "127.0.0.1:0", "--tokens", tokens}
		if secure {
			args = append(args, "--ui-secure")
		}
		url := world{}.start(t, args...).stdout.await(t, `dashboard: (http://\S+/)\n`)[1]
		res, err := http.Post(url+"session", "application/json", strings.NewReader(`{"token":"`+secret[len(secret)-1]+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if all := res.Cookies(); res.StatusCode != 200 || len(all) != 1 || all[0].Secure != secure {
			t.Errorf("secure %t: %d %v", secure, res.StatusCode, all)
		}
	}
}

func TestServeMaxViewers(t *testing.T) {
	url := world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--max-viewers", "1").stdout.await(t, `dashboard: (http://\S+/)\n`)[1]
	one, err := http.Get(url + "v1/live")
	if err != nil {
		t.Fatal(err)
	}
	defer one.Body.Close()
	if status, body, err := fetch(t, url+"v1/live"); err != nil || status != 503 || !strings.Contains(string(body), "--max-viewers allows more") {
		t.Errorf("one more: %d %s %v", status, body, err)
	}
	run1(t, world{}, step{args: "serve --store mem: --http 127.0.0.1:0 --max-viewers 0", code: exitUsage, stderr: `tarry: --max-viewers 0 is less than 1 .*\n`})
}
