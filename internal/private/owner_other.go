//go:build !unix

package private

import "os"

// hasModes: files have no owner and mode that restrict reading.
const hasModes = false

func ofRoot(os.FileInfo) bool { return false }
