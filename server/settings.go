package server

import (
	"net/http"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// settings tells the settings of a queue.
func (s *Server) settings(x *exchange, r *http.Request) error {
	if _, err := wire.Query(r.URL.RawQuery); err != nil {
		return err
	}
	set, revision, err := s.c.Settings(r.Context(), x.path.Queue())
	return s.set(x, &set, revision, err)
}

// configure stores the settings of a queue, all of them.
func (s *Server) configure(x *exchange, r *http.Request) error {
	var set engine.Settings
	var revision string
	err := s.options(x, r, func(in *input) { set, revision = in.Settings() })
	if err == nil {
		revision, err = s.c.Configure(r.Context(), x.path.Queue(), set, revision)
		x.note("revision", revision)
	}
	return s.set(x, &set, revision, err)
}

func (s *Server) set(x *exchange, set *engine.Settings, revision string, err error) error {
	if err != nil {
		return err
	}
	return s.answer(x, func(b []byte) []byte { return wire.AppendSettings(b, set, revision) })
}
