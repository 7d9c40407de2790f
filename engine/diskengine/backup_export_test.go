package diskengine

import (
	"context"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// RestoreOn is Restore on a file system.
func RestoreOn(ctx context.Context, fs vfs.FS, from, to string) (engine.Backup, error) {
	return restore(ctx, fs, from, to, nil)
}

// SalvageOn is Salvage on a file system.
func SalvageOn(ctx context.Context, fs vfs.FS, from, to string) (Salvaged, error) {
	return salvage(ctx, fs, from, to, func(*Salvaged) error { return nil }, nil)
}
