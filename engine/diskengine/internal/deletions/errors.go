package deletions

import "errors"

var (
	// ErrDamaged says that something durable cannot be read. The error is a *vfs.DamageError.
	ErrDamaged = errors.New("a file of deletion bitmaps is damaged")

	// ErrNewer says that a newer release wrote the file.
	ErrNewer = errors.New("the deletion bitmaps were written by a newer release; use that one")
)
