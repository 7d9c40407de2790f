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

// setAttributes gives a server its own process group, which gets no signals from the terminal,
// and ends it with the process of the test.
func setAttributes(cmd *exec.Cmd, as *account) {
	a := attributes(cmd)
	a.Setpgid, a.Pdeathsig = true, syscall.SIGKILL
	if as != nil {
		a.Credential = &syscall.Credential{Uid: as.uid, Gid: as.gid}
	}
}

// changeRoot runs a command in another root directory.
func changeRoot(cmd *exec.Cmd, root string) { attributes(cmd).Chroot = root }

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	return cmd.SysProcAttr
}

// halt stops a process and its children, including those that left its process group. It
// returns their ids when all have stopped, so that none can fork any more.
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

// States of a process, by Linux's letters.
const (
	stopped = 'T'
	dead    = 'Z'
)

// moment is the pause before reading a state again.
const moment = 200 * time.Microsecond

func state(pid int) byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, found := bytes.Cut(stat, []byte(") "))
	if err != nil || !found {
		return dead
	}
	return rest[0]
}

// killFamily kills a process and its children, and waits until they have ended.
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

// pause stops a process and its children, and waits until they have stopped.
func pause(_ testing.TB, p *os.Process) { halt(p.Pid) }

func resume(t testing.TB, p *os.Process) {
	t.Helper()
	for _, pid := range halt(p.Pid) {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}
