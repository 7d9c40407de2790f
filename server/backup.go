package server

import (
	"encoding/json"
	"net/http"
	"path/filepath"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
	"github.com/tarryhq/tarry/server/access"
)

var callBackup = &call{
	id: "backUp", group: groupServer, does: "Back the store up",
	more:    "It needs the scope admin on all queues, and a server that was given a directory for backups.",
	request: wire.Backing.Shape, answers: ok("The backup that was made.", wire.BackedUp.Ref()),
	fails:   []error{engine.ErrNoSpace, engine.ErrUnsupported},
	example: json.RawMessage(`{"name":"orders"}`),
}

// backup brings a backup up to date.
func (s *Server) backup(x *exchange, r *http.Request) error {
	if x.token != nil && !x.token.MayAll(access.Admin) {
		return x.forbidden(access.Admin, "all queues")
	}
	name, err := decode(x, r, wire.Backing)
	if err != nil {
		return err
	}
	x.note("name", name)
	b, ok := s.c.Engine().(engine.Backuper)
	switch {
	case !ok:
		return &engine.Error{Op: "backup", Err: engine.ErrUnsupported, Hint: "the store of this server is not backed up so"}
	case s.cfg.BackupDir == "":
		return &engine.Error{Op: "backup", Err: engine.ErrUnsupported, Hint: "give the server a directory for backups: tarry serve --backup-dir"}
	}
	made, err := b.Backup(r.Context(), filepath.Join(s.cfg.BackupDir, name))
	if err != nil {
		return err
	}
	return respond(x, wire.BackedUp, &wire.Backup{Name: name, Backup: made})
}
