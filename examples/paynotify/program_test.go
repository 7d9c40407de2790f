package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
)

// TestProgram runs the program with a tarry server, over real connections and faster than
// the schedule.
func TestProgram(t *testing.T) {
	e := memengine.New(nil)
	defer e.Close()
	c := tarry.New(e, nil)
	defer c.Close()
	s := httptest.NewServer(server.New(c, nil))
	defer s.Close()
	secrets := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(secrets, []byte(secret+"\n"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tell := func(ctx context.Context, shop http.Handler, order, faster string) (code int, said string) {
		l := httptest.NewServer(shop)
		defer l.Close()
		var out bytes.Buffer
		code = run(ctx, []string{"--url", l.URL, "--order", order, "--store", s.URL, "--secret-file", secrets, "--private", "--faster", faster}, &out, &out)
		return code, out.String()
	}

	m := &merchant{t: t, start: time.Now(), answers: []http.HandlerFunc{fails, redirects, fails, knows}}
	code, said := tell(t.Context(), m, "42", "1000")
	if code != 0 || strings.Count(said, "again at") != 3 || !strings.HasSuffix(said, "call 4: the merchant knows\n") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if code, said := tell(t.Context(), m, "42", "1000"); code != 0 || said != "the merchant knows already\n" {
		t.Errorf("told again: exit code %d: %s", code, said)
	}
	if code, said := tell(t.Context(), http.HandlerFunc(gone), "44", "1"); code != 1 || !strings.Contains(said, "given up at call 1") || !strings.Contains(said, "this shop has closed") {
		t.Errorf("410: exit code %d: %s", code, said)
	}

	// Interrupted after the first call, the notice stays with its next call.
	ctx, stop := context.WithCancel(t.Context())
	code, said = tell(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fails(w, r)
		stop()
	}), "43", "1")
	info, err := c.Get(t.Context(), tarry.ByKey("43").Of("order.paid"))
	if code != 1 || err != nil || info.State != tarry.Scheduled || info.Attempt != 1 {
		t.Errorf("interrupted: exit code %d: %s; %v, attempt %d, %v", code, said, info.State, info.Attempt, err)
	}
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
