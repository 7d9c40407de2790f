package pgtest

import (
	"os/user"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// dataDir is where, in its folder, a server keeps its data.
const dataDir = "data"

// installed returns the path of a program of PostgreSQL, which Debian keeps out of the
// PATH.
func installed(t testing.TB, program string) string {
	t.Helper()
	return servertest.Installed(t, program, "postgresql", "/usr/lib/postgresql/*/bin")
}

// runner is the user who runs the servers where the tests are root, as whom PostgreSQL
// and PgBouncer refuse to run.
var runner = sync.OnceValue(func() string {
	if _, err := user.Lookup("postgres"); err == nil {
		return "postgres"
	}
	return "nobody"
})

// first is the path of the data that a server starts with.
var first servertest.Once[string]

// newFolder makes the folder of a server with the first data.
func newFolder(t testing.TB) string {
	t.Helper()
	initdb := installed(t, "initdb") // or t is skipped
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

// SmallDisk mounts a disk of so many bytes for a tablespace, on a folder, to be filled. Where
// that is not permitted the test is skipped.
func SmallDisk(t testing.TB, bytes int) (folder string, grow func(bytes int)) {
	t.Helper()
	return servertest.SmallDisk(t, runner(), bytes)
}
