package vfs

import "fmt"

// DamageError says where something durable cannot be read. Unwrap returns What.
type DamageError struct {
	What   error // what is damaged: a package's ErrDamaged
	File   string
	Offset int64 // in the file
	Reason string
}

// Error implements error.
func (e *DamageError) Error() string {
	return fmt.Sprintf("%v: %s, offset %d: %s", e.What, e.File, e.Offset, e.Reason)
}

// Unwrap returns what is damaged.
func (e *DamageError) Unwrap() error { return e.What }
