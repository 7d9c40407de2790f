package diskengine

import (
	"errors"
	"path/filepath"
	"syscall"

	"github.com/tarryhq/tarry/engine/diskengine/internal/manifest"
	"github.com/tarryhq/tarry/engine/diskengine/internal/vfs"
)

// syncAbove makes the names of the directory and of those above it durable: a process may have
// made them and crashed before it synced them.
func (e *Engine) syncAbove() error {
	for dir := e.dir; dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		if err := e.fs.SyncDir(dir); errors.Is(err, syscall.EIO) {
			return err
		} else if err != nil {
			break // it belongs to another user, or cannot be synced
		}
	}
	return nil
}

// begin begins the log, and notes that in the manifest. If the disk is full, the next manifest
// says it.
func (e *Engine) begin(man *manifest.Manifest) error {
	s := man.State()
	if s.Begun {
		return nil
	}
	err := e.log.Begin()
	if err == nil {
		s.Begun = true
		err = man.Write(s)
	}
	if vfs.IsFull(err) && !errors.Is(err, manifest.ErrFailed) {
		return nil
	}
	return err
}
