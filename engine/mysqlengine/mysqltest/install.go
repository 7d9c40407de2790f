package mysqltest

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

const (
	// dataDir is where, in its folder, a server keeps its data.
	dataDir = "data"

	// pkg has mariadbd and mariadb-install-db, and makes no service of them.
	pkg = "mariadb-server-core"
)

// frugal are the settings by which a server is installed and started.
var frugal = []string{"--innodb-flush-method=nosync", "--innodb-log-file-size=8M", "--skip-name-resolve"}

// first is the data that a server starts with, made once for all tests of the process.
var first struct {
	mu   sync.Mutex
	path string
}

func firstData(t testing.TB) string {
	t.Helper()
	install := servertest.Installed(t, "mariadb-install-db", pkg)
	servertest.Installed(t, "my_print_defaults", "mariadb-client-core") // it asks that
	first.mu.Lock()
	defer first.mu.Unlock()
	if first.path == "" {
		dir := servertest.Folder(servertest.Lasting(t), "")
		path := filepath.Join(dir, dataDir)
		args := append([]string{"--no-defaults", "--user=root", "--datadir=" + path, "--tmpdir=" + dir,
			"--auth-root-authentication-method=normal", "--skip-test-db"}, frugal...)
		servertest.Run(t, "", dir, install, args...)
		first.path = path
	}
	return first.path
}
