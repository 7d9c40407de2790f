//go:build !unix

package secretfile

import "os"

// hasModes is false: files have no owner and mode that restrict access.
const hasModes = false

func ownedByRoot(os.FileInfo) bool { return false }
