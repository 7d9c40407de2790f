//go:build unix

package cli

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// ownGroup gives a command its own process group. An interrupt typed at the terminal does not
// reach it, and killing it kills all that it started. On Linux it is killed when this program
// dies.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithUs(cmd.SysProcAttr)
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
