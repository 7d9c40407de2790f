package httpengine

import (
	"context"
	"net/http"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/internal/wire"
)

// Backup has the server update the backup of that name, in the server's directory for
// backups.
func (e *Engine) Backup(ctx context.Context, name string) (engine.Backup, error) {
	made, err := ask(ctx, e, call{op: "backup", method: http.MethodPost, path: "/v1/backup", body: wire.Backing.Append(nil, &name), free: true}, wire.BackedUp)
	return made.Backup, err
}
