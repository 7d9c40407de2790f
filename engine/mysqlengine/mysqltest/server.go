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

// Parts that the kinds of servers share.
var (
	Main       = servertest.Main
	Settings   = servertest.Settings // lines of my.cnf
	StartProxy = servertest.StartProxy
	As         = servertest.As
)

// Option configures a server at its start.
type Option = servertest.Option

var mariadb = servertest.SQL{
	Variable: "TARRY_TEST_MYSQL_URL",
	URL:      "mysql://root@%s/mysql",
	Open:     open,
	Drop:     "DROP DATABASE %s",
}

// Server is a MariaDB server, or a MySQL server if TARRY_TEST_ROOT has one.
type Server = servertest.SQLServer

// Shared returns the URL of an empty database for a test that needs no control of the server:
// see servertest.SQL.
func Shared(t testing.TB) string {
	t.Helper()
	return mariadb.Shared(t, func(t testing.TB) string { return Start(t, Settings("max_connections=500")).URL() })
}

// SmallDisk puts the server's data on a disk that has so many bytes more than the server
// itself needs. It sets grow to a function that changes this number. The test is skipped if
// it may not mount.
func SmallDisk(t testing.TB, bytes int, grow *func(bytes int)) Option {
	t.Helper()
	dir, resize := servertest.SmallDisk(t, "", own()+bytes)
	*grow = func(bytes int) { resize(own() + bytes) }
	return func(c *servertest.Command) { c.Dir = dir }
}

// Start starts a server with its own data. It takes about 0.7 s, and one second more for the
// first server of a process. Stop shuts the server down cleanly and ends its connections.
//
// By default nothing waits for the disk, because no test cuts the power, and the redo log is
// small. Everything else has MariaDB's default. Measurements should set
// "innodb_flush_method=O_DIRECT" and "innodb_log_file_size=96M".
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
			"--user=root", // it otherwise refuses to run as root
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

// Open opens the database of a URL. The end of the test closes it.
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
	conf.Logger = &mysql.NopLogger{} // its errors say the same
	c, err := mysql.NewConnector(conf)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// DSN returns the data source name of a URL for go-sql-driver/mysql.
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
