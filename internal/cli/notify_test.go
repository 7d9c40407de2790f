//go:build unix

package cli

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// manager is the side of systemd to which a service tells how it stands.
type manager struct {
	*testing.T
	conn *net.UnixConn
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // a short path, as sockets need
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return &manager{t, conn}
}

// told returns the next that a service tells.
func (m *manager) told(wait time.Duration) string {
	m.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		m.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := m.conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ""
	}
	if err != nil {
		m.Fatal(err)
	}
	return string(b[:n])
}

func (m *manager) want(patterns ...string) {
	m.Helper()
	for _, p := range patterns {
		if got := m.told(patience); !regexp.MustCompile(`^` + p + `$`).MatchString(got) {
			m.Fatalf("told is %q, not %q", got, p)
		}
	}
}

const (
	toldReady     = `READY=1\nSTATUS=serving`
	toldReloading = `RELOADING=1\nMONOTONIC_USEC=[0-9]+`
)

// systemd is told when requests are answered, and not before; that files are read again; and
// that it ends.
func TestServeTellsSystemd(t *testing.T) {
	m := newManager(t)
	config := filepath.Join(t.TempDir(), "config.json")
	for _, args := range []string{"", "--config " + config} {
		writeMode(t, config, `{"routes":[]}`, 0o600)
		wishes := make(chan os.Signal, 1)
		r := world{reloads: wishes}.start(t, strings.Fields("serve --store mem: --http 127.0.0.1:0 "+args)...)
		m.want("STATUS=opening the store", toldReady)
		server := r.stdout.await(t, `listens on (http://\S+)\n`)[1]
		if code, _, err := fetch(t, server+"/readyz"); err != nil || code != 200 {
			t.Errorf("%q: told is that it is ready, and it answers %d, %v", args, code, err)
		}
		wishes <- os.Interrupt // any will do
		m.want(toldReloading, toldReady)
		if args != "" { // one that is wrong changes nothing, and does not stop it
			writeMode(t, config, `{"routes":1}`, 0o600)
			wishes <- os.Interrupt
			m.want(toldReloading, toldReady)
		}
		if code := r.stop(t); code != 0 {
			t.Errorf("%q: it ended with %d", args, code)
		}
		m.want(`STOPPING=1\nSTATUS=.*`)
	}
}

// What cannot be opened is not ready.
func TestServeThatFailsIsNotReady(t *testing.T) {
	m := newManager(t)
	file := filepath.Join(t.TempDir(), "file")
	writeMode(t, file, "", 0o600)
	if code := (world{}).start(t, "serve", "--store", "disk:"+file, "--http", "127.0.0.1:0").wait(t); code == 0 {
		t.Error("it served")
	}
	m.want("STATUS=opening the store")
	if got := m.told(10 * time.Millisecond); got != "" {
		t.Errorf("told is %q", got)
	}
}
