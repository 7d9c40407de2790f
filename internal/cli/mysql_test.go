package cli

import (
	"testing"

	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
)

func TestCommandsOnMySQL(t *testing.T) {
	w := world{env: []string{"TARRY_STORE=" + mysqltest.Shared(t)}}
	w.must(t, "migrate", "up")
	for _, s := range commandSteps {
		run1(t, w, s)
	}
	for _, s := range []step{
		{args: "migrate status", stdout: `VERSION  APPLIED  MIGRATION\n1  TIME  00001_tables.sql\n`},
		{args: "migrate print", stdout: "-- The table of versions.*CREATE TABLE IF NOT EXISTS `tarry_message`.*"},
		{args: "migrate down --to 0 --yes --json", stdout: `{"outcome":"taken back","version":1}\n`},
		{args: "queues", code: exitUsage, stderr: `tarry: open: invalid \(.*run tarry migrate up.*\n`},
		{args: "migrate status --store mysql://127.0.0.1:1/x", code: exitUnavailable, stderr: `tarry: migrate: .*127.0.0.1:1.*\n`},
	} {
		run1(t, w, s)
	}
}
