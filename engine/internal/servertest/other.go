//go:build !linux

package servertest

import (
	"os"
	"os/exec"
	"testing"
)

// On other systems than Linux, servers run as the test's user, and tests that need more are
// skipped.

func setAttributes(*exec.Cmd, *account) {}

func changeRoot(*exec.Cmd, string) { panic(rootVariable + " needs Linux") }

func killFamily(p *os.Process) { _ = p.Kill() } // it may have ended

func pause(t testing.TB, _ *os.Process) {
	t.Helper()
	t.Skip("pausing a server needs Linux")
}

func resume(testing.TB, *os.Process) {}

// SmallDisk skips the test.
func SmallDisk(t testing.TB, _ string, _ int) (folder string, grow func(bytes int)) {
	t.Helper()
	t.Skip("no disk can be filled here: only Linux can mount one in memory")
	return "", nil
}
