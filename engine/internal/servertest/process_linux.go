package servertest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// attributes gives a server a process group of its own, so that killing it kills
// what it has forked, and lets it die with the process of the test.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) } // it may have ended

// pause stops a process and waits until it stands still.
func pause(t testing.TB, p *os.Process) {
	t.Helper()
	if err := syscall.Kill(-p.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	Await(t, "the process to stop", func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if err == nil && !bytes.Contains(stat, []byte(") T ")) {
			err = errors.New("it runs")
		}
		return err
	})
}

func resume(t testing.TB, p *os.Process) {
	t.Helper()
	if err := syscall.Kill(-p.Pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}
