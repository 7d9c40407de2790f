package server_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tarryhq/tarry"
	"github.com/tarryhq/tarry/engine/memengine"
	"github.com/tarryhq/tarry/server"
	"github.com/tarryhq/tarry/server/access"
)

// manyHeaders are about 30 KiB of headers, of which each is as short as can be.
func manyHeaders() string {
	var b strings.Builder
	for i := 0; b.Len() < 30<<10; i++ {
		fmt.Fprintf(&b, "%x:\r\n", i)
	}
	return b.String()
}

// serveUnseen serves without looking at what is asked and answered, which takes memory.
func serveUnseen(t *testing.T, cfg *server.Config) *served {
	c, p := tarry.New(memengine.New(nil), nil), newPipes()
	own := server.New(c, cfg)
	s := serveAs(t, c, &server.Watched{Server: own, Handler: own}, p)
	s.ln, s.dial = p, p.dial
	return s
}

// hostile has many clients say something, waits until they have been heard, and returns by
// how many bytes the heap has grown.
func (s *served) hostile(clients int, text string) int64 {
	said := []byte(text)
	before := heap()
	for range clients {
		w := s.wire()
		defer w.Close()
		go func() { _, _ = w.Conn.Write(said) }()
	}
	synctest.Wait()
	return heap() - before
}

const (
	mib     = 1 << 20
	clients = 200
)

// Where tokens are configured, those without one cost little together, whatever they do.
func TestWhatClientsWithoutATokenCost(t *testing.T) {
	file := access.File(filepath.Join(t.TempDir(), "tokens.json"))
	if err := os.WriteFile(string(file), []byte(`{"tokens":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	guard, err := access.NewGuard(file, &access.GuardConfig{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	many := manyHeaders()
	for name, said := range map[string]string{
		"half heads":        "GET /v1/info HTTP/1.1\r\nHost: localhost\r\n" + many,
		"a long header":     "GET /v1/info HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 31<<10),
		"a body to come":    "POST /v1/lease HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 8000000\r\n" + many + "\r\n",
		"half a body":       "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 8000000\r\n\r\n" + strings.Repeat(" ", 1<<20),
		"answers not taken": strings.Repeat("GET /v1/info HTTP/1.1\r\nHost: localhost\r\n"+many+"\r\n", 8),
		"probes":            strings.Repeat("GET /healthz HTTP/1.1\r\nHost: localhost\r\n"+many+"\r\n", 8),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serveUnseen(t, &server.Config{Guard: guard, Logger: quiet})
				defer s.end()
				if grown := s.hostile(clients, said); grown > 64*mib {
					t.Errorf("%d clients cost %d MiB", clients, grown/mib)
				}
			})
		})
	}
}

// Where there are none, all together cost what MaxBuffered says and 64 MiB.
func TestWhatClientsCost(t *testing.T) {
	many := manyHeaders()
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf(`"%s%d"`, strings.Repeat("q", 200), i))
	}
	polls := `{"wait":"60s","queues":[` + strings.Join(names, ",") + `]}`
	head := func(body string) string {
		return fmt.Sprintf("POST /v1/lease HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	base64 := `{"messages":[{"queue":"q","body_base64":"` + strings.Repeat("A", 1<<20) + `"}]`
	for name, said := range map[string]string{
		"half heads":             "GET /v1/info HTTP/1.1\r\nHost: localhost\r\n" + many,
		"polls and headers":      head(wait20) + many + "\r\n" + wait20,
		"polls and long headers": head(wait20) + strings.Repeat("X: "+strings.Repeat("x", 310)+"\r\n", 90) + "\r\n" + wait20,
		"polls of queues":        head(polls) + "\r\n" + polls,
		"a body to come":         head(polls) + many + "\r\n",
		"half a body":            request("POST", "/v1/messages", base64+"  ")[:1<<20],
		"answers not taken":      "GET /v1/queues/q/messages?body=true HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"leases not taken":       request("POST", "/v1/lease", leaseAll),
		"many small answers":     strings.Repeat("GET /v1/info HTTP/1.1\r\nHost: localhost\r\n"+many+"\r\n", 8),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serveUnseen(t, &server.Config{MaxBuffered: 16 * mib, WriteTimeout: time.Hour, ReadTimeout: time.Hour})
				defer s.end()
				s.fill("q")
				if grown := s.hostile(clients, said); grown > 80*mib {
					t.Errorf("%d clients cost %d MiB", clients, grown/mib)
				}
			})
		})
	}
}
