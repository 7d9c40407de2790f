//go:build linux

package measure

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tarryhq/tarry/bench/peer"
	"github.com/tarryhq/tarry/bench/scenario"
	_ "github.com/tarryhq/tarry/engine/diskengine"
	_ "github.com/tarryhq/tarry/engine/httpengine"
	_ "github.com/tarryhq/tarry/engine/memengine"
	_ "github.com/tarryhq/tarry/engine/mysqlengine"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
	_ "github.com/tarryhq/tarry/engine/pgengine"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
	_ "github.com/tarryhq/tarry/engine/rabbitengine"
	"github.com/tarryhq/tarry/engine/rabbitengine/rabbittest"
	_ "github.com/tarryhq/tarry/engine/redisengine"
	"github.com/tarryhq/tarry/engine/redisengine/redistest"
)

// place is where a system keeps its messages.
type place struct {
	open    func(ctx context.Context) (scenario.System, error)
	version string

	server  killable         // nil: this process is the server
	files   string           // directory with what is kept; "": nothing is
	flush   func(*testing.B) // has what is in memory written to files; nil: that is done
	ordered bool             // due times must not decrease
}

type killable interface {
	Kill()
	Restart()
}

// systems prepare a place for each system.
var systems = map[string]func(b *testing.B) *place{
	"mem":  func(*testing.B) *place { return &place{open: openTarry("mem:")} },
	"disk": func(b *testing.B) *place { return onDisk(b.TempDir()) },
	"http": func(b *testing.B) *place {
		dir := b.TempDir()
		p := start(b, *binaries+"/tarry", func(addr string) []string {
			return []string{"serve", "--store", "disk:" + dir, "--http", addr, "--trends=false"}
		})
		return &place{open: openTarry("http://" + p.addr), server: p, files: dir}
	},

	"redis": onRedis(func(srv *redistest.Server) opener { return openTarry(srv.URL()) }),
	"asynq": onRedis(func(srv *redistest.Server) opener {
		return func(context.Context) (scenario.System, error) { return peer.Asynq(srv.Addr()), nil }
	}),
	"bullmq": onRedis(func(srv *redistest.Server) opener { return openNode("bullmq", srv.URL()) }),

	"postgres":    onPostgres(func(url string) opener { return openTarry(url + "&migrate=true") }),
	"river":       onPostgres(func(url string) opener { return openRiver(url, peer.RiverDefault) }),
	"river-tuned": onPostgres(func(url string) opener { return openRiver(url, peer.RiverTuned) }),
	"graphile":    onPostgres(func(url string) opener { return openNode("graphile", url) }),

	"mariadb": onMariaDB(func(b *testing.B, url string) opener { return openTarry(url + "?migrate=true") }),
	"table": onMariaDB(func(b *testing.B, url string) opener {
		dsn := mysqltest.DSN(b, url)
		return func(ctx context.Context) (scenario.System, error) { return peer.Polled(ctx, dsn) }
	}),

	"rabbit": onRabbit(func(url string) opener {
		return func(ctx context.Context) (scenario.System, error) { return peer.TarryUnkeyed(ctx, url) }
	}, false),
	"rabbit-ttl": onRabbit(func(url string) opener {
		return func(context.Context) (scenario.System, error) { return peer.RabbitTTL(url) }
	}, true),

	"beanstalkd":        onBeanstalk(),
	"beanstalkd-synced": onBeanstalk("-f0"),
	"nats":              onNATS(""),
	"nats-synced":       onNATS("sync_interval: always"),
}

type opener = func(ctx context.Context) (scenario.System, error)

func openTarry(url string) opener {
	return func(ctx context.Context) (scenario.System, error) { return scenario.OpenTarry(ctx, url) }
}

func openNode(name, url string) opener {
	return func(ctx context.Context) (scenario.System, error) { return peer.Node(ctx, *nodeDir, name, url) }
}

func openRiver(url string, pace peer.Pace) opener {
	return func(ctx context.Context) (scenario.System, error) { return peer.River(ctx, url, pace) }
}

func onDisk(dir string) *place { return &place{open: openTarry("disk:" + dir), files: dir} }

// onRedis has a redis-server that appends each change to its log and syncs it every second. It
// does not rewrite the log, which would befall one or the other at random.
func onRedis(open func(srv *redistest.Server) opener) func(*testing.B) *place {
	return func(b *testing.B) *place {
		srv := redistest.Start(b, redistest.Args("--appendonly", "yes", "--appendfsync", "everysec",
			"--auto-aof-rewrite-percentage", "0", "--maxmemory-policy", "noeviction"))
		_, version, _ := strings.Cut(output(b, "redis-server", "--version"), "v=")
		version, _, _ = strings.Cut(version, " ")
		return &place{open: open(srv), version: "Redis " + version, server: srv, files: srv.Dir()}
	}
}

// onPostgres has a server as PostgreSQL comes, but for room for connections.
func onPostgres(open func(url string) opener) func(*testing.B) *place {
	return func(b *testing.B) *place {
		srv := pgtest.Start(b, pgtest.Settings("fsync = on", "max_connections = 200"))
		version, _, _ := strings.Cut(srv.Text("SHOW server_version"), " ")
		return &place{
			open: open(srv.Database()), version: "PostgreSQL " + version, server: srv,
			files: filepath.Join(srv.Text("SHOW data_directory"), "base"),
			flush: func(*testing.B) { srv.Exec("CHECKPOINT") },
		}
	}
}

// onMariaDB has a server as MariaDB comes.
func onMariaDB(open func(b *testing.B, url string) opener) func(*testing.B) *place {
	return func(b *testing.B) *place {
		srv := mysqltest.Start(b, mysqltest.Settings("innodb_flush_method=O_DIRECT", "innodb_log_file_size=96M"))
		version, _, _ := strings.Cut(srv.Text("SELECT VERSION()"), "-")
		url := srv.Database()
		return &place{
			open: open(b, url), version: "MariaDB " + version, server: srv,
			files: filepath.Join(srv.Text("SELECT @@datadir"), url[strings.LastIndex(url, "/")+1:]),
		}
	}
}

func onRabbit(open func(url string) opener, ordered bool) func(*testing.B) *place {
	return func(b *testing.B) *place {
		srv := rabbittest.Start(b, rabbittest.Settings("raft.wal_max_size_bytes = 536870912")) // as it is by default
		version := strings.TrimSpace(srv.Eval(`rabbit_misc:version().`))
		return &place{open: open(srv.Vhost()), version: "RabbitMQ " + strings.Trim(version, `"`), server: srv, files: srv.Dir(), ordered: ordered}
	}
}

// onBeanstalk has a beanstalkd with a log, which it syncs every 50 ms unless args say otherwise.
func onBeanstalk(args ...string) func(*testing.B) *place {
	return func(b *testing.B) *place {
		dir := b.TempDir()
		p := start(b, "beanstalkd", func(addr string) []string {
			host, port, _ := strings.Cut(addr, ":")
			return append([]string{"-l", host, "-p", port, "-b", dir}, args...)
		})
		return &place{
			open:    func(context.Context) (scenario.System, error) { return peer.Beanstalk(p.addr) },
			version: output(b, "beanstalkd", "-v"), server: p, files: dir,
		}
	}
}

// onNATS has a nats-server with JetStream, which syncs its files every two minutes unless
// setting says otherwise.
func onNATS(setting string) func(*testing.B) *place {
	return func(b *testing.B) *place {
		dir, program := b.TempDir(), *binaries+"/nats-server"
		p := start(b, program, func(addr string) []string {
			host, port, _ := strings.Cut(addr, ":")
			config := filepath.Join(b.TempDir(), "nats.conf")
			write(b, config, "host: "+host+"\nport: "+port+"\njetstream { store_dir: '"+dir+"'\n "+setting+" }\n")
			return []string{"-c", config}
		})
		return &place{
			open:    func(ctx context.Context) (scenario.System, error) { return peer.NATS(ctx, "nats://"+p.addr) },
			version: strings.ReplaceAll(output(b, program, "--version"), ": v", " "), server: p, files: dir,
		}
	}
}
