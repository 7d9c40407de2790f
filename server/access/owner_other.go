//go:build !unix

package access

import "os"

// keepOwner does nothing: files here have no such owners.
func keepOwner(*os.File, os.FileInfo) error { return nil }

// syncDir does nothing: folders here cannot be synced.
func syncDir(string) error { return nil }
