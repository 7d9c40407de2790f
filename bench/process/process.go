//go:build linux

// Package process starts the servers that are measured, and tells what they use.
package process

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Build builds the command tarry under a name. The caller calls remove in the end.
func Build(name string) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "tarry-bench-")
	if err != nil {
		return "", func() {}, err
	}
	path = filepath.Join(dir, name)
	out, err := exec.Command("go", "build", "-C", "../..", "-o", path, "./cmd/tarry").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, func() { _ = os.RemoveAll(dir) }, err
}

// Address returns a free address on loopback.
func Address(b testing.TB) *net.TCPAddr {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr)
}

// Start starts a server, waits until it listens on an address, and kills it when the benchmark
// ends. It returns the server's pid.
func Start(b testing.TB, cmd *exec.Cmd, address string) (pid int) {
	b.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(b, cmd.Start())
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return cmd.Process.Pid
		}
		if time.Since(began) > 10*time.Second {
			b.Fatalf("%s does not listen: %v", cmd.Path, err)
		}
	}
}

// Resident returns the bytes of memory that a process has.
func Resident(b testing.TB, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(b, err)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kilobytes, err := strconv.ParseFloat(number, 64)
	must(b, err)
	return kilobytes * 1024
}

// Used returns the processor time that a process has used, in whole ticks of 10 ms.
func Used(b testing.TB, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(b, err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	must(b, err)
	system, err := strconv.Atoi(fields[12])
	must(b, err)
	return time.Duration(user+system) * time.Second / 100
}

func must(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
