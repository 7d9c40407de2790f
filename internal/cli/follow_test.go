//go:build linux

package cli

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"github.com/tarryhq/tarry/internal/nettest"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// machine is a clean one, in a directory, on which docs/operations is followed to the
// letter: its paths lie below that directory, its port is a free one, and its name is an
// address. There is no systemd on it, but somebody who does what the units say.
type machine struct {
	*testing.T
	root, work string // all files; the repository
	port       string
	put        *strings.Replacer
	env        []string
	server     *exec.Cmd
	log        *awaited
}

// Of a dynamic user, and of the group that may read the files.
const (
	dynamicUser = 47111
	filesGroup  = 47110
)

func newMachine(t *testing.T) *machine {
	if os.Geteuid() != 0 {
		t.Skip("the pages give files to others, which root alone can")
	}
	m := &machine{T: t, root: t.TempDir(), port: strconv.Itoa(nettest.FreePort(t))}
	m.work = filepath.Join(m.root, "work")
	for _, dir := range []string{"work", "usr/local/bin", "etc/systemd/system", "etc/prometheus", "var/lib", "var/log"} {
		m.ok(os.MkdirAll(filepath.Join(m.root, dir), 0o755))
	}
	for dir := m.root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) { // the dynamic user has to get there
		m.ok(os.Chmod(dir, 0o755))
	}
	m.ok(os.Symlink(filepath.Dir(operations(t, "")), filepath.Join(m.work, "docs")))
	_, cert, key := nettest.Certificate(t)
	for name, file := range map[string]string{"cert.pem": cert, "key.pem": key} {
		data, err := os.ReadFile(file)
		m.ok(err)
		m.ok(os.WriteFile(filepath.Join(m.work, name), data, 0o600))
	}
	m.put = strings.NewReplacer("/usr/local/bin/", m.root+"/usr/local/bin/", "/etc/", m.root+"/etc/", "/var/", m.root+"/var/",
		"tarry.example.com:8277", "127.0.0.1:"+m.port, "127.0.0.1:8277", "127.0.0.1:"+m.port, ":8277", ":"+m.port,
		"-g tarry-files", fmt.Sprint("-g ", filesGroup), "chgrp tarry-files", fmt.Sprint("chgrp ", filesGroup), "sudo ", "")
	m.env = []string{"PATH=" + m.root + "/usr/local/bin:" + os.Getenv("PATH"), "HOME=" + m.work, "TARRY_TEST_MAIN=1",
		"TARRY_SERVER=http://127.0.0.1:" + m.port, "SSL_CERT_FILE=" + filepath.Join(m.work, "cert.pem")}
	t.Cleanup(m.stop)
	return m
}

func (m *machine) ok(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// follow does what a page says, line by line. Lines of programs that are not here are
// left out, aloud.
func (m *machine) follow(page string) {
	m.Helper()
	done := 0
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(readOperations(m.T, page), -1) {
		for line := range strings.Lines(block[1]) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "   # ")
			line, _, _ = strings.Cut(line, " # ")
			m.do(page, strings.TrimSpace(line))
			done++
		}
	}
	if done < 5 {
		m.Errorf("%s: %d lines to follow", page, done)
	}
}

func (m *machine) do(page, line string) {
	m.Helper()
	command, words := m.put.Replace(line), strings.Fields(strings.TrimPrefix(line, "sudo "))
	switch {
	case words[0] == "docker":
		m.Logf("%s: left out, as there is no daemon: %s", page, line)
	case words[0] == "groupadd", strings.HasSuffix(line, "systemctl daemon-reload"), strings.HasSuffix(line, "systemctl reload prometheus"):
	case words[0] == "make" && words[1] == "build":
		command = "cp " + os.Args[0] + " tarry"
		m.shell(page, command)
	case words[0] == "systemctl" && words[len(words)-1] == "tarry":
		m.stop()
		m.start()
	case words[0] == "promtool" && words[1] == "test": // it takes seconds, and another test does so
		_, err := os.Stat(filepath.Join(m.work, words[3]))
		m.ok(err)
	case words[0] == "promtool" && !has("promtool"), words[0] == "curl" && !has("curl"):
		m.Logf("%s: left out, as there is no such program: %s", page, line)
	default:
		m.shell(page, command)
	}
}

func has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

func (m *machine) shell(page, line string) {
	m.Helper()
	cmd := exec.CommandContext(m.Context(), "sh", "-ec", line)
	cmd.Dir, cmd.Env = m.work, m.env
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte(`"error"`)) {
		m.Fatalf("%s: %s: %v\n%s", page, line, err, out)
	}
}

// start does what the unit, and what stands beside it, has systemd do.
func (m *machine) start() {
	m.Helper()
	env, groups, run := map[string]string{"PATH": os.Getenv("PATH"), "TARRY_TEST_MAIN": "1"}, []uint32(nil), ""
	files, err := filepath.Glob(m.root + "/etc/systemd/system/tarry.service.d/*.conf")
	m.ok(err)
	set := func(assignments string) {
		for _, a := range strings.Fields(assignments) {
			name, value, _ := strings.Cut(a, "=")
			env[name] = m.put.Replace(value)
		}
	}
	after := ""
	for _, file := range append([]string{m.root + "/etc/systemd/system/tarry.service"}, files...) {
		data, err := os.ReadFile(file)
		m.ok(err)
		for line := range strings.Lines(string(data)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch name {
			case "Environment":
				set(value)
			case "EnvironmentFile":
				after = m.put.Replace(strings.TrimPrefix(value, "-"))
			case "ExecStart":
				run = m.put.Replace(value)
			case "SupplementaryGroups":
				groups = append(groups, filesGroup)
			case "StateDirectory", "LogsDirectory":
				dir := filepath.Join(m.root, map[string]string{"StateDirectory": "var/lib", "LogsDirectory": "var/log"}[name], value)
				m.ok(os.MkdirAll(dir, 0o700))
				m.ok(exec.CommandContext(m.Context(), "chown", "-R", fmt.Sprint(dynamicUser), dir).Run())
			}
		}
	}
	if data, err := os.ReadFile(after); err == nil { // it comes last
		set(string(data))
	}
	args := strings.Fields(run)
	m.server = exec.Command(args[0], args[1:]...)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		m.server.Env = append(m.server.Env, name+"="+env[name])
	}
	m.log = newAwaited()
	m.server.Stdout, m.server.Stderr, m.server.Dir = m.log, m.log, "/"
	m.server.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: dynamicUser, Gid: dynamicUser, Groups: groups}}
	m.ok(m.server.Start())
	m.log.await(m.T, `listens on \S+\n`)
}

func (m *machine) stop() {
	if m.server == nil {
		return
	}
	_ = m.server.Process.Signal(syscall.SIGTERM)
	if err := m.server.Wait(); err != nil {
		m.Errorf("the server ended with %v: %s", err, m.log)
	}
	m.server = nil
}

// What docs/operations says can be followed, and leads to where it says: a server that
// others reach with tokens and TLS alone, run by a user who may read what it needs.
func TestOperationsCanBeFollowed(t *testing.T) {
	m := newMachine(t)
	m.follow("README.md")
	if status, body := m.get("http", "/readyz", ""); status != 200 || body != `{"status":"ready"}` {
		t.Fatalf("%d %s", status, body)
	}
	m.follow("security.md")
	if status, body := m.get("https", "/v1/queues/order.unpaid", ""); status != 401 {
		t.Errorf("without a token: %d %s", status, body)
	}
	if status, body := m.get("https", "/v1/queues/order.unpaid", "ann.token"); status != 200 || !strings.Contains(body, `"scheduled":1`) {
		t.Errorf("%d %s", status, body)
	}
	if out, err := exec.CommandContext(t.Context(), "ls", "-ln", m.root+"/etc/tarry").CombinedOutput(); err != nil || strings.Count(string(out), "-rw-r-----") != 3 {
		t.Errorf("%v: %s", err, out)
	}
	// What is revoked afterwards, by root, the server's user reads.
	m.shell("security.md", m.put.Replace("tarry token revoke ann --tokens /etc/tarry/tokens.json"))
	deadline := time.Now().Add(patience)
	for {
		status, body := m.get("https", "/v1/queues", "ann.token")
		if status == 401 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a token that was revoked: %d %s\n%s", status, body, m.log)
		}
		time.Sleep(50 * time.Millisecond)
	}
	audit, err := os.ReadFile(m.root + "/var/log/tarry/audit.log")
	if err != nil || !strings.Contains(string(audit), `"what":"token revoke","token":"ann"`) {
		t.Errorf("%s, %v", audit, err)
	}
}

func (m *machine) get(scheme, path, tokenFile string) (status int, body string) {
	m.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	pem, err := os.ReadFile(filepath.Join(m.work, "cert.pem"))
	m.ok(err)
	transport.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(m.Context(), http.MethodGet, scheme+"://127.0.0.1:"+m.port+path, nil)
	m.ok(err)
	if tokenFile != "" {
		token, err := os.ReadFile(filepath.Join(m.work, tokenFile))
		m.ok(err)
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := client.Do(r)
	m.ok(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	m.ok(err)
	return resp.StatusCode, string(b)
}
