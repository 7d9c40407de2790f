package pgtest

import (
	"fmt"
	"net/url"
	"strconv"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// Replica starts a streaming replica of the server with the same settings, and waits until it
// follows. It needs only what the server allows by default. These statements on the server
// make it synchronous:
//
//	ALTER SYSTEM SET synchronous_standby_names = '*'
//	SELECT pg_reload_conf()
func (s *Server) Replica(opts ...Option) *Server {
	s.t.Helper()
	c := servertest.Command{Dir: servertest.Folder(s.t, runner())}
	c.Apply(opts)
	servertest.Run(s.t, runner(), c.Dir, installed(s.t, "pg_basebackup"),
		"--host", "127.0.0.1", "--port", strconv.Itoa(s.Port(0)), "--username", "postgres",
		"--pgdata", dataDir, "--write-recovery-conf", "--checkpoint", "fast", "--no-sync")
	r := start(s.t, c)
	servertest.Await(s.t, "the replica to follow", func() error {
		status, err := r.Try("SELECT coalesce((SELECT status FROM pg_stat_wal_receiver), 'none')")
		if err == nil && status != "streaming" {
			err = fmt.Errorf("its receiver is %s", status)
		}
		return err
	})
	return r
}

// CatchUp waits until the replica has everything that its primary has written so far.
func (s *Server) CatchUp(with *Server) {
	s.t.Helper()
	written := with.Text("SELECT pg_current_wal_lsn()::text")
	servertest.Await(s.t, "the replica to catch up", func() error {
		behind, err := s.Try("SELECT ($1::pg_lsn - pg_last_wal_replay_lsn())::text", written)
		if err == nil && behind[0] != '-' && behind != "0" {
			err = fmt.Errorf("it is %s bytes behind", behind)
		}
		return err
	})
}

// Promote makes a replica a primary, and waits until it accepts writes.
func (s *Server) Promote() {
	s.t.Helper()
	if s.Text("SELECT pg_promote(true, "+strconv.Itoa(int(servertest.Patience.Seconds()))+")::text") != "true" {
		s.t.Fatalf("%s has not become a primary", s.Addr())
	}
}

// JoinURL returns a URL of the same database on whichever of the servers accepts writes.
func JoinURL(t testing.TB, of string, others ...*Server) string {
	t.Helper()
	return servertest.At(t, of, func(u *url.URL) {
		for _, s := range others {
			u.Host += "," + s.Addr()
		}
		q := u.Query()
		q.Set("target_session_attrs", "read-write")
		u.RawQuery = q.Encode()
	})
}
