//go:build !linux

package redistest

import (
	"os"
	"syscall"
	"testing"
)

func attributes() *syscall.SysProcAttr { return nil }

func killGroup(p *os.Process) { _ = p.Kill() } // it may have ended

func stop(t testing.TB, _ *os.Process) {
	t.Helper()
	t.Skip("pausing a server needs Linux")
}

func cont(testing.TB, *os.Process) {}
