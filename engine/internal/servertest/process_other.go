//go:build !linux

package servertest

import (
	"os"
	"syscall"
	"testing"
)

func attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as}
}

func killFamily(p *os.Process) { _ = p.Kill() } // it may have ended

func pause(t testing.TB, _ *os.Process) {
	t.Helper()
	t.Skip("pausing a server needs Linux")
}

func resume(testing.TB, *os.Process) {}
