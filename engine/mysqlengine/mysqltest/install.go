package mysqltest

import (
	"os"
	"path/filepath"
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
func frugal() []string {
	own := []string{"--innodb-log-file-size=8M"}
	if IsMySQL() { // which has a binary log unless told otherwise
		own = []string{"--innodb-redo-log-capacity=16M", "--sync-binlog=0"}
	}
	return append(own, "--innodb-flush-method=nosync", "--skip-name-resolve")
}

// IsMySQL reports whether servers are MySQL's: TARRY_TEST_ROOT names a system that has it,
// and no MariaDB.
func IsMySQL() bool {
	has := func(program string) bool {
		_, err := os.Lstat(filepath.Join(servertest.Root(), "usr/sbin", program))
		return err == nil
	}
	return servertest.Root() != "" && has("mysqld") && !has("mariadbd")
}

// own is how many bytes of a disk a server needs for itself.
func own() int {
	if IsMySQL() {
		return 120 << 20
	}
	return 40 << 20
}

// program is the path of the server.
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
		rights := filepath.Join(dir, "rights.sql") // root is let in by sockets alone
		if err := os.WriteFile(rights, []byte("CREATE USER root@'127.0.0.1';\nGRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		servertest.Run(t, "", dir, program(t), append([]string{"--no-defaults", "--initialize-insecure", "--user=root",
			"--datadir=" + path, "--init-file=" + rights}, frugal()...)...)
		return
	}
	servertest.Installed(t, "my_print_defaults", "mariadb-client-core") // mariadb-install-db asks that
	servertest.Run(t, "", dir, servertest.Installed(t, "mariadb-install-db", pkg), append([]string{"--no-defaults", "--user=root",
		"--datadir=" + path, "--tmpdir=" + dir, "--auth-root-authentication-method=normal", "--skip-test-db"}, frugal()...)...)
}

// first is the path of the data that a server starts with.
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
