package mysqltest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

const (
	// dataDir is the name of a server's data directory in its directory.
	dataDir = "data"

	// pkg contains mariadbd and mariadb-install-db, and starts no service.
	pkg = "mariadb-server-core"
)

// frugal returns the settings with which a server is installed and started.
func frugal() []string {
	own := []string{"--innodb-log-file-size=8M"}
	if IsMySQL() { // which has a binary log by default
		own = []string{"--innodb-redo-log-capacity=16M", "--sync-binlog=0"}
	}
	return append(own, "--innodb-flush-method=nosync", "--skip-name-resolve")
}

// IsMySQL reports whether the servers are MySQL's: TARRY_TEST_ROOT has MySQL and no MariaDB.
func IsMySQL() bool {
	has := func(program string) bool {
		_, err := os.Lstat(filepath.Join(servertest.Root(), "usr/sbin", program))
		return err == nil
	}
	return servertest.Root() != "" && has("mysqld") && !has("mariadbd")
}

// own returns how many bytes of a disk a server needs for itself.
func own() int {
	if IsMySQL() {
		return 120 << 20
	}
	return 40 << 20
}

// program returns the path of the server.
func program(t testing.TB) string {
	t.Helper()
	if IsMySQL() {
		return servertest.Installed(t, "mysqld", "mysql-server-core", "/usr/sbin")
	}
	return servertest.Installed(t, "mariadbd", pkg, "/usr/sbin")
}

// install makes the data of a server.
func install(t testing.TB, dir, path string) {
	t.Helper()
	if IsMySQL() {
		rights := filepath.Join(dir, "rights.sql") // root may connect only by sockets
		if err := os.WriteFile(rights, []byte("CREATE USER root@'127.0.0.1';\nGRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		servertest.Run(t, "", dir, program(t), append([]string{"--no-defaults", "--initialize-insecure", "--user=root",
			"--datadir=" + path, "--init-file=" + rights}, frugal()...)...)
		return
	}
	servertest.Installed(t, "my_print_defaults", "mariadb-client-core") // mariadb-install-db needs it
	servertest.Run(t, "", dir, servertest.Installed(t, "mariadb-install-db", pkg), append([]string{"--no-defaults", "--user=root",
		"--datadir=" + path, "--tmpdir=" + dir, "--auth-root-authentication-method=normal", "--skip-test-db"}, frugal()...)...)
}

// first has the path of the initial data of servers, which is made once.
var first servertest.Once[string]

func firstData(t testing.TB) string {
	t.Helper()
	return first.Get(t, func(t testing.TB) string {
		dir := servertest.Folder(t, "")
		path := filepath.Join(dir, dataDir)
		install(t, dir, path)
		return path
	})
}
