package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// TestSeenByTarryGet runs the program against a server, faster than the schedule and over
// real connections, and looks at each attempt with the tarry command.
func TestSeenByTarryGet(t *testing.T) {
	command := filepath.Join(t.TempDir(), "tarry")
	if out, err := exec.Command("go", "build", "-o", command, "../../cmd/tarry").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	e := memengine.New(nil)
	defer e.Close()
	c := tarry.New(e, nil)
	defer c.Close()
	api := server.New(c, nil)
	s := httptest.NewServer(api)
	defer s.Close()
	get := func(order string) string {
		out, err := exec.Command(command, "get", "order.paid", order, "--server", s.URL).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return strings.Join(strings.Fields(string(out)), " ")
	}
	wants := func(shown string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(shown, part) {
				t.Errorf("tarry get does not show %q: %s", part, shown)
			}
		}
	}
	secrets := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(secrets, []byte(secret+"\n"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tell := func(ctx context.Context, at, order, faster string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = run(ctx, []string{"--url", at, "--order", order, "--store", s.URL, "--secret-file", secrets, "--private", "--faster", faster}, &out, &errs)
		return code, out.String(), errs.String()
	}

	calls := 0
	m := &merchant{t: t, start: time.Now(), answers: []http.HandlerFunc{fails, redirects, fails, knows}}
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown := get("42")
		switch calls++; calls {
		case 1:
			wants(shown, "state leased", "attempt 1 of 6")
		case 2:
			wants(shown, "state leased", "attempt 2 of 6", "last error", "answered 503 Service Unavailable: closed for lunch")
		case 3:
			wants(shown, "state leased", "attempt 3 of 6", "should be https://new.example/paid")
		case 4:
			wants(shown, "state leased", "attempt 4 of 6", "closed for lunch")
		}
		m.ServeHTTP(w, r)
	}))
	defer shop.Close()
	code, stdout, stderr := tell(t.Context(), shop.URL, "42", "1000")
	if code != 0 || strings.Count(stdout, "again at") != 3 || !strings.HasSuffix(stdout, "call 4: the merchant knows\n") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	wants(get("42"), "state finished", "acked")
	if code, stdout, _ := tell(t.Context(), shop.URL, "42", "1000"); code != 0 || stdout != "the merchant knows already\n" {
		t.Errorf("told again: exit code %d: %s", code, stdout)
	}

	// Between two calls: the next is due 15 s after the first.
	ctx, stop := context.WithCancel(t.Context())
	failing := httptest.NewServer(http.HandlerFunc(fails))
	defer failing.Close()
	done := make(chan int, 1)
	go func() {
		code, _, _ := tell(ctx, failing.URL, "43", "1")
		done <- code
	}()
	var info tarry.Info
	for info.Attempt != 1 || info.State != tarry.Scheduled {
		if len(done) > 0 {
			t.Fatal("the program has ended")
		}
		info, _ = c.Get(t.Context(), tarry.ByKey("43").Of("order.paid"))
		time.Sleep(time.Millisecond)
	}
	wants(get("43"), "state scheduled", "due", "(in ", "attempt 1 of 6", "closed for lunch", "backoff 15s, 30s, 3m, 10m, 30m")
	stop()
	if code := <-done; code != 1 {
		t.Errorf("interrupted, the exit code is %d", code)
	}

	closed := httptest.NewServer(http.HandlerFunc(gone))
	defer closed.Close()
	if code, _, stderr := tell(t.Context(), closed.URL, "44", "1"); code != 1 || !strings.Contains(stderr, "given up at call 1") || !strings.Contains(stderr, "this shop has closed") {
		t.Errorf("410: exit code %d: %s", code, stderr)
	}
	wants(get("44"), "state dead", "attempt 1 of 6", "answered 410 Gone: this shop has closed")
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"--url", "http://x"}, {"--order", "1"}, {"--nonsense"}, {"--url", "u", "--order", "1", "more"}, {"--url", "u", "--order", "1", "--faster", "0"}} {
		var stderr bytes.Buffer
		if code := run(t.Context(), args, &stderr, &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("%v: exit code %d, %s", args, code, &stderr)
		}
	}
	for _, args := range [][]string{
		{"--url", "https://x.example", "--order", "1", "--store", "cupboard:"},
		{"--url", "http://127.0.0.1", "--order", "1"},
		{"--url", "https://x.example", "--order", "1", "--secret-file", "/nowhere"},
	} {
		var stderr bytes.Buffer
		if code := run(t.Context(), args, &stderr, &stderr); code != 1 || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%v: exit code %d, %s", args, code, &stderr)
		}
	}
}
