package server_test

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/nettest"
	"github.com/tarryhq/tarry/server"
)

// Who looks after a server learns that its certificate ends while there is time.
func TestCertificateThatEndsSoon(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Now()
	for _, c := range []struct {
		name       string
		life, left time.Duration
		log, told  string // "": none
	}{
		{"new", 90 * day, 89 * day, "", ""},
		{"not yet", 90 * day, 15 * day, "", ""},
		{"two weeks", 90 * day, 14*day - time.Hour, "level=WARN msg=\"the certificate ends soon\"", "the server's certificate ends in 13 days, on "},
		{"a day", 365 * day, day + time.Hour/2, "the certificate ends soon", "ends in 24h"},
		{"short-lived, not yet", 6 * day, 2 * day, "", ""},
		{"short-lived", 6 * day, day + time.Hour, "the certificate ends soon", "the server's certificate ends in 2"},
		{"over", 90 * day, -time.Hour, "level=ERROR msg=\"the certificate has ended", "the server's certificate has ended, on "},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, cert, key := nettest.CertificateBetween(t, now.Add(c.left-c.life), now.Add(c.left))
			log := new(bytes.Buffer)
			shown, err := server.TLSFiles{Cert: cert, Key: key}.Open(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})))
			if err != nil {
				t.Fatal(err)
			}
			if got := shown.End(); got.Sub(now.Add(c.left)).Abs() > time.Minute {
				t.Errorf("it ends at %s", got)
			}
			if !strings.Contains(log.String(), c.log) || c.log == "" && log.Len() > 0 {
				t.Errorf("logged was %q, not %q", log, c.log)
			}
			client := tarry.New(memengine.New(nil), nil)
			defer client.Engine().Close()
			defer client.Close()
			r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/readyz", nil)
			w := httptest.NewRecorder()
			newServer(t, client, &server.Config{Certificate: shown}).ServeHTTP(w, r)
			body := w.Body.String()
			if w.Code != 200 || !strings.Contains(body, c.told) || strings.Contains(body, "certificate") != (c.told != "") {
				t.Errorf("/readyz answers %d %s, not with %q", w.Code, body, c.told)
			}
		})
	}
}
