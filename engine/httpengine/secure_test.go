package httpengine_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/internal/nettest"
	"github.com/tarryhq/tarry/server"
)

func TestPrivateAuthority(t *testing.T) {
	cfg, cert, _ := nettest.Certificate(t)
	eng := memengine.New(nil)
	c := tarry.New(eng, nil)
	s := httptest.NewUnstartedServer(server.New(c, nil))
	s.TLS = cfg
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.StartTLS()
	defer func() {
		_ = c.Close()
		s.Close()
		_ = eng.Close()
	}()
	e := open(t, s.URL+"?ca_file="+url.QueryEscape(cert))
	defer e.Close()
	if _, err := e.Push(t.Context(), []engine.Message{tarry.NewDraft("q", nil)}); err != nil {
		t.Error(err)
	}
	if _, err := engine.Open(t.Context(), s.URL); !errors.Is(err, engine.ErrUnavailable) || !strings.Contains(err.Error(), "is not trusted; name its authority by ca_file, as in "+s.URL+"?ca_file=PATH") {
		t.Errorf("without the authority: %v", err)
	}
	for raw, want := range map[string]string{
		"http://127.0.0.1:1?ca_file=x":                         `has no option "ca_file"`,
		"https://127.0.0.1:1?ca_file=/nowhere":                 "ca_file: open /nowhere",
		"https://127.0.0.1:1?ca_file=":                         "ca_file names no file",
		"https://127.0.0.1:1?cert_file=" + cert + "&key_file=": "key_file names no file",
		"https://127.0.0.1:1?cert_file=" + cert:                "cert_file and key_file",
	} {
		if _, err := engine.Open(t.Context(), raw); !errors.Is(err, engine.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestTokenWithoutTLS(t *testing.T) {
	for raw, warned := range map[string]bool{
		"http://secret@tarry.invalid": true, "http://secret@192.0.2.7:1": true, "https://secret@tarry.invalid": false,
		"http://tarry.invalid": false, "http://secret@127.0.0.1:1": false, "http://secret@[::1]:1": false, "http://secret@localhost:1": false,
	} {
		var log bytes.Buffer
		u, err := url.Parse(raw + "?timeout=1ms")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := httpengine.Open(t.Context(), u, &httpengine.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}); err == nil {
			t.Errorf("%s: somebody is there", raw)
		}
		if got := strings.Contains(log.String(), "without TLS"); got != warned || strings.Contains(log.String(), "secret") {
			t.Errorf("%s: logged was %q", raw, &log)
		}
	}
}
