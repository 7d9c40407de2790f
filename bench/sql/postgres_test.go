package sql

import (
	"fmt"
	"testing"
	"time"

	"github.com/tarryhq/tarry/bench/peer"
	"github.com/tarryhq/tarry/bench/scenario"
	_ "github.com/tarryhq/tarry/engine/pgengine"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

var (
	riverAsItComes = riverAt("river", peer.RiverDefault)
	riverTuned     = riverAt("river-tuned", peer.RiverTuned)
)

func riverAt(name string, pace peer.Pace) system {
	return system{name, func(b *testing.B, url string) (scenario.System, error) { return peer.River(b.Context(), url, pace) }}
}

var tarryOnPostgres = system{"tarry", func(b *testing.B, url string) (scenario.System, error) {
	return scenario.OpenTarry(b.Context(), url+"&migrate=true")
}}

func BenchmarkPostgresPush(b *testing.B) {
	alternate(b, startPostgres(b), scenario.Push, riverAsItComes, tarryOnPostgres)
}

func BenchmarkPostgresPushBatch(b *testing.B) {
	alternate(b, startPostgres(b), scenario.PushBatch, riverAsItComes, tarryOnPostgres)
}

func BenchmarkPostgresLateness(b *testing.B) {
	scenario.Once(b)
	compare(b, startPostgres(b), scenario.Lateness, riverAsItComes, riverTuned, tarryOnPostgres)
}

func BenchmarkPostgresBurst(b *testing.B) {
	scenario.Once(b)
	alternate(b, startPostgres(b), scenario.Burst, riverAsItComes, riverTuned, tarryOnPostgres)
}

// BenchmarkPostgresDepth measures cancels among few and many messages that are far away,
// and an idle worker among many.
func BenchmarkPostgresDepth(b *testing.B) {
	scenario.Once(b)
	srv := startPostgres(b)
	for _, sys := range []system{riverAsItComes, tarryOnPostgres} {
		for _, pending := range []int{1000, *scenario.Pending} {
			b.Run(fmt.Sprintf("impl=%s/pending=%d", sys.name, pending), func(b *testing.B) {
				url := srv.Database()
				s := sys.fresh(b, url)
				scenario.Fill(b, s, scenario.Queue, pending)
				settle(b, url)
				if pending == *scenario.Pending {
					scenario.Idle(b, s)
				}
				scenario.CancelManyAmong(b, s, pending)
			})
		}
	}
}

// startPostgres starts a server as PostgreSQL comes, but for room for River's connections.
func startPostgres(b *testing.B) *pgtest.Server {
	s := pgtest.Start(b, pgtest.Settings("fsync = on", "max_connections = 200"))
	fmt.Println("postgresql:", s.Text("SHOW server_version"))
	return s
}

// settle does at once what the server would do within minutes after a database has been
// filled, and might befall one or the other.
func settle(b *testing.B, url string) {
	pool := pgtest.Pool(b, url)
	defer pool.Close()
	for n := 1; ; n++ {
		for _, sql := range []string{"VACUUM ANALYZE", "CHECKPOINT"} {
			_, err := pool.Exec(b.Context(), sql)
			scenario.Must(b, err)
		}
		time.Sleep(statsWithin)
		var left int
		scenario.Must(b, pool.QueryRow(b.Context(), `SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker')
			+ (SELECT count(*) FROM pg_stat_user_tables WHERE n_mod_since_analyze + n_dead_tup > 0)`).Scan(&left))
		if left == 0 {
			return
		}
		if n == settleMost {
			b.Fatal("the server does not come to rest")
		}
	}
}

// statsWithin is by when sessions have told what they changed, upon which vacuum would begin
// again.
const statsWithin = 11 * time.Second

// settleMost is how often a server may be found not to be at rest.
const settleMost = 10
