package mysqltest

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/tarryhq/tarry/engine/internal/servertest"
)

// What servers of other kinds have alike.
var (
	Main       = servertest.Main
	Settings   = servertest.Settings // as my.cnf has them
	Clock      = servertest.Clock
	StartProxy = servertest.StartProxy
	As         = servertest.As
)

// Option is a choice made on starting servers.
type Option = servertest.Option

var mariadb = servertest.SQL{
	Variable: "TARRY_TEST_MYSQL_URL",
	URL:      "mysql://root@%s/mysql",
	Open:     open,
	Drop:     "DROP DATABASE %s",
}

// Server is one MariaDB server, or one of MySQL where TARRY_TEST_ROOT names a system with that.
type Server = servertest.SQLServer

// Shared returns the URL of an empty database for a test that only needs some MariaDB or
// MySQL, see servertest.SQL.
func Shared(t testing.TB) string {
	t.Helper()
	return mariadb.Shared(t, func(t testing.TB) string { return Start(t, Settings("max_connections=500")).URL() })
}

// SmallDisk keeps the server's data on a disk with so many bytes more than the server itself
// needs, to be filled; grow is set to what makes them more. Where that is not permitted the test
// is skipped.
func SmallDisk(t testing.TB, bytes int, grow *func(bytes int)) Option {
	t.Helper()
	dir, resize := servertest.SmallDisk(t, "", own()+bytes)
	*grow = func(bytes int) { resize(own() + bytes) }
	return func(c *servertest.Command) { c.Dir = dir }
}

// Start starts a server with data of its own, which takes some 0.7 s, and for the first
// of a process one second more. Stop ends it in order, which cuts its connections.
//
// Without Settings nothing waits for the disk, as no test takes the machine's power away,
// the redo log is small, and the rest is as MariaDB has it. What measures says
// "innodb_flush_method=O_DIRECT", "innodb_log_file_size=96M".
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	c := servertest.Command{Program: program(t), Ready: []string{"ready for connections"}}
	c.Apply(opts)
	from := firstData(t)
	if c.Dir == "" {
		c.Dir = servertest.Folder(t, "")
	}
	servertest.Run(t, "", c.Dir, "cp", "-R", "-p", from, dataDir)
	c.Args = func(ports []int) []string {
		args := slices.Concat([]string{
			"--no-defaults",
			"--user=root", // it refuses to run as root unless told to
			"--datadir=" + filepath.Join(c.Dir, dataDir),
			"--bind-address=127.0.0.1",
			"--port=" + strconv.Itoa(ports[0]),
			"--socket=" + filepath.Join(c.Dir, "socket"),
			"--pid-file=" + filepath.Join(c.Dir, "pid"),
		}, frugal())
		if IsMySQL() {
			args = append(args, "--mysqlx=OFF")
		}
		for _, s := range c.Settings {
			args = append(args, "--"+s)
		}
		return args
	}
	return mariadb.Start(t, c)
}

// Open opens the database of a URL, and closes it at the test's end.
func Open(t testing.TB, url string) *sql.DB {
	t.Helper()
	db, err := open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // its connections may be cut
	return db
}

func open(url string) (*sql.DB, error) {
	conf, err := config(url)
	if err != nil {
		return nil, err
	}
	conf.Logger = &mysql.NopLogger{} // of what its errors say
	c, err := mysql.NewConnector(conf)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// DSN is the data source name for go-sql-driver/mysql of a URL.
func DSN(t testing.TB, url string) string {
	t.Helper()
	c, err := config(url)
	if err != nil {
		t.Fatal(err)
	}
	return c.FormatDSN()
}

func config(of string) (*mysql.Config, error) {
	u, err := url.Parse(of)
	if err != nil {
		return nil, err
	}
	c := mysql.NewConfig()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	return c, nil
}
