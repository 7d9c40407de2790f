//go:build !linux

package servertest

import (
	"os"
	"os/exec"
	"testing"
)

// setAttributes lets a server run as the test does: changing the user needs Linux.
func setAttributes(*exec.Cmd, *account) {}

func changeRoot(*exec.Cmd, string) { panic(rootVariable + " needs Linux") }

func killFamily(p *os.Process) { _ = p.Kill() } // it may have ended

func pause(t testing.TB, _ *os.Process) {
	t.Helper()
	t.Skip("pausing a server needs Linux")
}

func resume(testing.TB, *os.Process) {}
