//go:build !unix

package secretfile

import "os"

// hasModes is false: files have no owner and mode that restrict access.
const hasModes = false

func ownedByRoot(os.FileInfo) bool { return false }

// keepOwner does nothing: files here have no such owners.
func keepOwner(*os.File, os.FileInfo) error { return nil }

// syncDir does nothing: folders here cannot be synced.
func syncDir(string) error { return nil }
