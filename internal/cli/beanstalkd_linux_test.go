package cli

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// As a link that is named beanstalkd it runs in the units of beanstalkd: it takes the socket that
// systemd listens on, becomes another user, and drains on SIGUSR1.
func TestBeanstalkdInItsUnits(t *testing.T) {
	link := filepath.Join(t.TempDir(), "beanstalkd")
	if err := os.Symlink(os.Args[0], link); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	args, uid := []string{"-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`, link, "-l", "127.0.0.1", "-p", "1"}, fmt.Sprint(os.Getuid())
	if nobody, err := user.Lookup("nobody"); err == nil && os.Getuid() == 0 {
		args, uid = append(args, "-u", "nobody"), nobody.Uid
	} else {
		t.Log("only root can become another user")
	}
	out := newAwaited()
	cmd := exec.CommandContext(t.Context(), "sh", args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = append(os.Environ(), "TARRY_TEST_MAIN=1"), out, out, []*os.File{f}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	_ = f.Close()
	_ = l.Close()
	out.await(t, "listens on "+l.Addr().String()+" for clients of beanstalkd")
	j := dialJobs(t, l.Addr().String())
	j.answers("put 0 0 60 1\r\nx", "INSERTED ")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if want := "Uid:\t" + strings.Repeat(uid+"\t", 4); err != nil || !strings.Contains(string(status), strings.TrimSpace(want)+"\n") {
		t.Errorf("the user is not %s: %v\n%s", uid, err, status)
	}
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	out.await(t, "draining")
	j.answers("put 0 0 60 1\r\nx", "DRAINING")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
