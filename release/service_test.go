package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a server may take to start on a busy machine.
const patience = 2 * time.Minute

// service is what runs in a root directory: as the unit of a package says, or the configuration
// of an image.
type service struct {
	root     string
	uid, gid uint32
	argv     []string
	env      []string
}

// unit reads the packaged unit of a root directory.
func unit(t *testing.T, root string) service {
	t.Helper()
	content := read(t, filepath.Join(root, "usr/lib/systemd/system/tarry.service"))
	line := func(name string) string {
		t.Helper()
		all := regexp.MustCompile(`(?m)^`+name+`=(.*)$`).FindAllStringSubmatch(content, -1)
		if len(all) != 1 {
			t.Fatalf("the unit has %d lines %s=", len(all), name)
		}
		return all[0][1]
	}
	s := service{root: root, argv: strings.Fields(line("ExecStart")), env: strings.Fields(line("Environment"))}
	s.uid = id(t, filepath.Join(root, "etc/passwd"), line("User"))
	s.gid = id(t, filepath.Join(root, "etc/group"), line("Group"))
	for line := range strings.Lines(read(t, filepath.Join(root, strings.TrimPrefix(line("EnvironmentFile"), "-")))) {
		if !strings.HasPrefix(line, "#") {
			s.env = append(s.env, strings.TrimSpace(line))
		}
	}
	return s
}

// id is the number of a user or group in the file that lists them.
func id(t *testing.T, file, name string) uint32 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + `:[^:]*:(\d+):`).FindStringSubmatch(read(t, file))
	if m == nil {
		t.Fatalf("%s has no %s", file, name)
	}
	n, err := strconv.ParseUint(m[1], 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func (s service) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
	cmd.Env, cmd.Dir = s.env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: s.root, Credential: &syscall.Credential{Uid: s.uid, Gid: s.gid}}
	return cmd
}

// start runs the service until the returned function is called, and waits until it serves.
func (s service) start(t *testing.T) (url string, stop func()) {
	t.Helper()
	cmd := s.command(context.WithoutCancel(t.Context()))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v\n%s", s.argv, err, log.String())
		}
	})
	t.Cleanup(stop)
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), " listens on "); ok {
			go func() {
				for lines.Scan() { // what else it says must not block it
				}
			}()
			return url, stop
		}
	}
	t.Fatalf("%v as user %d does not serve", s.argv, s.uid)
	return "", nil
}

// call makes a request, and fails the test if the status differs.
func call(t *testing.T, method, url, body string, status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != status {
		t.Errorf("%s %s: %s", method, url, res.Status)
	}
}

const message = "/v1/queues/mail/keys/42"

func push(t *testing.T, url string) {
	t.Helper()
	call(t, http.MethodPost, url+"/v1/queues/mail/messages", `{"body":1,"delay":"48h","key":"42"}`, http.StatusCreated)
}

// freeAddress returns a loopback address at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// needed skips the test, aloud, where it cannot run: it needs root, and programs of Debian's.
func needed(t *testing.T, programs ...string) {
	t.Helper()
	missing := ""
	if os.Getuid() != 0 {
		missing = "root"
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			missing = fmt.Sprintf("%s; make release-check installs it on Debian, as root", p)
		}
	}
	switch {
	case missing == "":
	case os.Getenv("TARRY_TEST_SERVERS") == "require":
		t.Fatalf("this test needs %s, and TARRY_TEST_SERVERS=require", missing)
	default:
		t.Skipf("this test needs %s", missing)
	}
}
