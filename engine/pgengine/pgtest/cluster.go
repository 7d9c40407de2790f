package pgtest

import (
	"os/user"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// dataDir is the name of a server's data directory in its directory.
const dataDir = "data"

// installed returns the path of a program of PostgreSQL. Debian keeps these out of the PATH.
func installed(t testing.TB, program string) string {
	t.Helper()
	return servertest.Installed(t, program, "postgresql", "/usr/lib/postgresql/*/bin")
}

// runner returns the user that runs the servers if the tests run as root, since PostgreSQL
// and PgBouncer refuse to run as root.
var runner = sync.OnceValue(func() string {
	if _, err := user.Lookup("postgres"); err == nil {
		return "postgres"
	}
	return "nobody"
})

// first has the path of the initial data of servers, which is made once.
var first servertest.Once[string]

// newFolder makes the directory of a server with the initial data.
func newFolder(t testing.TB) string {
	t.Helper()
	initdb := installed(t, "initdb") // skips t if it is missing
	from := first.Get(t, func(t testing.TB) string {
		dir := servertest.Folder(t, runner())
		servertest.Run(t, runner(), dir, initdb, "--no-sync", "--pgdata", dataDir,
			"--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8")
		return filepath.Join(dir, dataDir)
	})
	dir := servertest.Folder(t, runner())
	servertest.Run(t, runner(), dir, "cp", "-R", "-p", from, dataDir)
	return dir
}

// SmallDisk mounts a disk of so many bytes for a tablespace. The test is skipped if it may
// not mount.
func SmallDisk(t testing.TB, bytes int) (folder string, grow func(bytes int)) {
	t.Helper()
	return servertest.SmallDisk(t, runner(), bytes)
}
