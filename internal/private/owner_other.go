//go:build !unix

package private

import "os"

// hasModes: files have no owners and modes that tell who may read them.
const hasModes = false

func ofRoot(os.FileInfo) bool { return false }
