package sql

import (
	"flag"
	"os"
	"testing"

	"github.com/tarryhq/tarry/bench/scenario"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m).Run()) }

var rounds = flag.Int("rounds", 3, "how often the systems take turns with pushes and bursts")

// system is one of those compared, each on a database of its own.
type system struct {
	name string
	open func(b *testing.B, url string) (scenario.System, error)
}

// fresh opens the system on a database.
func (s system) fresh(b *testing.B, url string) scenario.System {
	opened, err := s.open(b, url)
	return scenario.Warm(b, opened, err)
}

// compare runs a benchmark for each system. What one leaves behind goes before the next, else
// the server would clean up after one while another is measured.
func compare(b *testing.B, srv *pgtest.Server, run func(*testing.B, scenario.Open), systems ...system) {
	for _, s := range systems {
		b.Run("impl="+s.name, func(b *testing.B) {
			run(b, func(b *testing.B) scenario.System {
				url := srv.Database()
				b.Cleanup(func() { srv.Drop(url) })
				return s.fresh(b, url)
			})
		})
	}
}

// alternate runs a benchmark for each system in turn, several times.
func alternate(b *testing.B, srv *pgtest.Server, run func(*testing.B, scenario.Open), systems ...system) {
	for range *rounds {
		compare(b, srv, run, systems...)
	}
}
