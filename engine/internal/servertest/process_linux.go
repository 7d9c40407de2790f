package servertest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// setAttributes gives a server a process group of its own, lest what is typed at the
// test's terminal reach it, and lets it die with the process of the test.
func setAttributes(cmd *exec.Cmd, as *account) {
	a := attributes(cmd)
	a.Setpgid, a.Pdeathsig = true, syscall.SIGKILL
	if as != nil {
		a.Credential = &syscall.Credential{Uid: as.uid, Gid: as.gid}
	}
}

// changeRoot has a command run in a root of its own.
func changeRoot(cmd *exec.Cmd, root string) { attributes(cmd).Chroot = root }

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	return cmd.SysProcAttr
}

// halt stops a process and all that it has forked, also those that left its process
// group, and returns them once they stand still: none forks any more.
func halt(pid int) []int {
	if syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return nil // it has ended
	}
	for s := state(pid); s != stopped && s != dead; s = state(pid) {
		time.Sleep(moment)
	}
	family := []int{pid}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is good
	for _, list := range lists {
		text, _ := os.ReadFile(list) // it may have ended
		for child := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				family = append(family, halt(n)...)
			}
		}
	}
	return family
}

// The states of a process that are asked for, by the letters of Linux.
const (
	stopped = 'T'
	dead    = 'Z'
)

// moment is how long to wait before asking for a state again.
const moment = 200 * time.Microsecond

func state(pid int) byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, found := bytes.Cut(stat, []byte(") "))
	if err != nil || !found {
		return dead
	}
	return rest[0]
}

// killFamily kills a process and all that it has forked, and waits until these have
// ended.
func killFamily(p *os.Process) {
	family := halt(p.Pid)
	for _, pid := range family {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	for _, pid := range family {
		for state(pid) != dead {
			time.Sleep(moment)
		}
	}
}

// pause stops a process with all that it has forked and waits until they stand still.
func pause(_ testing.TB, p *os.Process) { halt(p.Pid) }

func resume(t testing.TB, p *os.Process) {
	t.Helper()
	for _, pid := range halt(p.Pid) {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}
