//go:build !linux

package servertest

import "testing"

// SmallDisk skips the test.
func SmallDisk(t testing.TB, _ string, _ int) (folder string, grow func(bytes int)) {
	t.Helper()
	t.Skip("no disk can be filled here: only Linux can mount one in memory")
	return "", nil
}
