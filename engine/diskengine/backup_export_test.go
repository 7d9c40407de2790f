package diskengine

import (
	"context"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/disk"
)

// RestoreOn is Restore on a file system.
func RestoreOn(ctx context.Context, fs disk.FS, from, to string) (engine.Backup, error) {
	return restore(ctx, fs, from, to, nil)
}
