package sql

import (
	"fmt"
	"testing"

	"github.com/tarryhq/tarry/bench/peer"
	"github.com/tarryhq/tarry/bench/scenario"
	_ "github.com/tarryhq/tarry/engine/mysqlengine"
	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

var polledTable = system{"table", func(b *testing.B, url string) (scenario.System, error) {
	return peer.Polled(b.Context(), mysqltest.DSN(b, url))
}}

var tarryOnMariaDB = system{"tarry", func(b *testing.B, url string) (scenario.System, error) {
	return scenario.OpenTarry(b.Context(), url+"?migrate=true")
}}

func BenchmarkMariaDBPush(b *testing.B) {
	alternate(b, startMariaDB(b), scenario.Push, polledTable, tarryOnMariaDB)
}

func BenchmarkMariaDBLateness(b *testing.B) {
	scenario.Once(b)
	compare(b, startMariaDB(b), scenario.Lateness, polledTable, tarryOnMariaDB)
}

// startMariaDB starts a server as MariaDB comes.
func startMariaDB(b *testing.B) *mysqltest.Server {
	s := mysqltest.Start(b, mysqltest.Settings("innodb_flush_method=O_DIRECT", "innodb_log_file_size=96M"))
	fmt.Println("mariadb:", s.Text("SELECT VERSION()"))
	return s
}
