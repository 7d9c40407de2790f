package pgtest

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Bouncer is a PgBouncer in front of a server.
type Bouncer struct {
	*servertest.Server
	t testing.TB
}

// bouncerFile is the name of a PgBouncer's configuration file in its directory.
const bouncerFile = "pgbouncer.ini"

// Bouncer starts a PgBouncer in transaction mode in front of the server. It serves all
// databases and connects to them as the superuser. Settings are lines of pgbouncer.ini, such
// as "default_pool_size = 2". The last of repeated settings wins.
func (s *Server) Bouncer(settings ...string) *Bouncer {
	s.t.Helper()
	dir := servertest.Folder(s.t, runner())
	return &Bouncer{t: s.t, Server: servertest.Start(s.t, servertest.Command{
		Program: servertest.Installed(s.t, "pgbouncer", "pgbouncer", "/usr/sbin"),
		Dir:     dir,
		User:    runner(),
		Ready:   []string{"process up: "},
		Args: func(ports []int) []string {
			text := fmt.Sprintf(""+
				"[databases]\n* = host=127.0.0.1 port=%d user=postgres\n"+
				"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\n"+
				"auth_type = any\npool_mode = transaction\n", s.Port(0), ports[0])
			for _, line := range settings {
				text += line + "\n"
			}
			if err := os.WriteFile(filepath.Join(dir, bouncerFile), []byte(text), 0o644); err != nil {
				s.t.Fatal(err)
			}
			return []string{bouncerFile}
		},
	})}
}

// URL returns the URL of a database of the server through the PgBouncer.
func (b *Bouncer) URL(of string) string {
	b.t.Helper()
	return servertest.At(b.t, of, func(u *url.URL) { u.Host = b.Addr() })
}
