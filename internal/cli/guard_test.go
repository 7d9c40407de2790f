package cli

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tarryhq/tarry/engine/httpengine"
	"github.com/tarryhq/tarry/internal/nettest"
)

func TestTokenFileThatOthersMayRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	writeMode(t, file, "tarry_a_b\n", 0o644)
	config := filepath.Join(dir, "config.json")
	writeMode(t, config, `{"token_file":"`+file+`"}`, 0o644)
	w := world{env: []string{"TARRY_SERVER=http://127.0.0.1:1"}}
	for args, env := range map[string]string{
		"queues --token-file " + file: "x=",
		"queues":                      "TARRY_TOKEN_FILE=" + file,
		"queues --config " + config:   "x=",
		"status --ready":              "TARRY_TOKEN_FILE=" + file,
		"queues --timeout 1s --server http://127.0.0.1:1?token_file=" + url.QueryEscape(file): "x=",
	} {
		run1(t, world{env: append([]string{env}, w.env...)}, step{args: args, code: exitUsage,
			stderr: `tarry: .*token.file: others may read or write ` + file + `, its mode is 0644 \(chmod 600 ` + file + `\)\)?\n`})
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	run1(t, w, step{args: "queues --token-file " + file, code: exitUnavailable, stderr: `tarry: open: .*\n`})
}

func writeMode(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}

// An audit log that was moved away goes on in a new file.
func TestAuditFileThatIsRotated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	a := auditFile(path)
	line := func(s string) {
		t.Helper()
		if _, err := a.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(path, want string) {
		t.Helper()
		data, err := os.ReadFile(path)
		info, _ := os.Stat(path)
		if err != nil || string(data) != want || info.Mode() != 0o600 {
			t.Errorf("%s holds %q, not %q, %v, %v", path, data, want, info, err)
		}
	}
	line("1\n2\n")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	line("3\n")
	holds(path+".1", "1\n2\n")
	holds(path, "3\n")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	line("4\n")
	holds(path, "4\n")
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Write([]byte("5\n")); err == nil {
		t.Error("it was written to a file that nobody can find")
	}
}

// That the certificate ends soon the log, the metrics and the status tell, until there is
// another.
func TestServeWithACertificateThatEndsSoon(t *testing.T) {
	now := time.Now()
	_, cert, key := nettest.CertificateBetween(t, now.Add(-80*24*time.Hour), now.Add(10*24*time.Hour+time.Hour))
	_, newCert, newKey := nettest.CertificateBetween(t, now, now.Add(90*24*time.Hour))
	s := world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	at := strings.TrimPrefix(s.stdout.await(t, `listens on (https://\S+)\n`)[1], "https://")
	s.stderr.await(t, `level=WARN msg="the certificate ends soon" end=\S+`)
	status := func(ca string, wanted step) {
		t.Helper()
		wanted.args = "status --server https://" + at + "?ca_file=" + url.QueryEscape(ca)
		run1(t, world{}, wanted)
	}
	status(cert, step{code: exitFailed, stdout: `.*: ready\n! the server's certificate ends in 10 days, on \S+\n  put a new one, .*`, stderr: `tarry: there is 1 problem .*\n`})
	both, err := os.ReadFile(newCert)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := os.ReadFile(newKey)
	if err != nil {
		t.Fatal(err)
	}
	writeMode(t, cert, string(both), 0o644)
	writeMode(t, key, string(secret), 0o600)
	awaits(t, "the new certificate", func() error {
		u, err := url.Parse("https://" + at + "?ca_file=" + url.QueryEscape(newCert))
		if err != nil {
			return err
		}
		return httpengine.Ready(t.Context(), u, nil)
	})
	status(newCert, step{stdout: `.*: ready\n(?s:.*)`})
}

// Of an audit log that cannot be written the log, the metrics and the status tell, and
// operators go on.
func TestServeWithAFullAuditLog(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("there is no " + full)
	}
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	file := newToken(t, tokens, "ann", "operate,read", "*")
	s := world{}.start(t, "serve", "--store", "mem:", "--http", "127.0.0.1:0", "--tokens", tokens, "--audit-log", full)
	server := s.stdout.await(t, `listens on (http://\S+)\n`)[1]
	w := world{env: []string{"TARRY_SERVER=" + server, "TARRY_TOKEN_FILE=" + file}}
	w.must(t, "pause", "mail")
	s.stderr.await(t, `a line of the audit log could not be written.*no space left.*what\\":\\"pause\\",\\"who\\":\\"ann`)
	run1(t, w, step{args: "status", code: exitFailed, stdout: `.*: ready\n! the audit log cannot be written: .*no space left on device; lines missing: 1\n  make room .*`, stderr: `tarry: there is 1 problem .*\n`})
	run1(t, world{env: w.env[:1]}, step{args: "status --ready", stdout: "ready\n"})
	if _, body := get(t, server+"/metrics", file); !strings.Contains(body, "\ntarry_audit_lines_lost_total 1\n") {
		t.Error("the metrics do not tell of it")
	}
}

func TestExposed(t *testing.T) {
	for ip, want := range map[string]bool{"127.0.0.1": false, "127.9.9.9": false, "::1": false, "::ffff:127.0.0.1": false,
		"192.0.2.7": true, "0.0.0.0": true, "::": true, "fe80::1": true} {
		if got := exposed(&net.TCPAddr{IP: net.ParseIP(ip)}); got != want {
			t.Errorf("%s: %v", ip, got)
		}
	}
}

// A name of this machine that others reach is refused by the address that it has, though
// it be localhost.
func TestServeOnALocalhostThatIsNone(t *testing.T) {
	addr := ownAddress(t)
	hosts := filepath.Join(t.TempDir(), "hosts")
	writeMode(t, hosts, addr+" localhost\n", 0o644)
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("this test needs a file system of its own, so that localhost may be another: unshare: %v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", `mount --bind "$1" /etc/hosts && exec "$2" serve --store mem: --http localhost:0`, "sh", hosts, os.Args[0])
	cmd.Env = append(os.Environ(), "TARRY_TEST_MAIN=1")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitUsage || !bytes.HasPrefix(out, []byte("tarry: localhost:0 ("+addr)) || !bytes.Contains(out, []byte("can be reached from other machines")) {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}

// ownAddress is an address of this machine that is not loopback.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

// get asks for a URL with the token that a file holds.
func get(t *testing.T, url, tokenFile string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
