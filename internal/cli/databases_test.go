package cli

import (
	"slices"
	"testing"

	"github.com/tarryhq/tarry/engine/mysqlengine/mysqltest"
	"github.com/tarryhq/tarry/engine/pgengine/pgtest"
)

func TestCommandsOnDatabases(t *testing.T) {
	t.Parallel()
	for _, store := range []string{pgtest.Shared(t), mysqltest.Shared(t)} {
		w := world{env: []string{"TARRY_STORE=" + store}}
		w.must(t, "migrate", "up")
		for _, s := range slices.Concat(commandSteps, scheduleSteps) {
			run1(t, w, s)
		}
	}
}

func TestMigrate(t *testing.T) {
	for store, table := range map[string]string{pgtest.Shared(t): `"tarry"."message"`, mysqltest.Shared(t): "`tarry_message`"} {
		migrates(t, store, table)
	}
	run1(t, world{}, step{args: "migrate up", code: exitUsage, stderr: "tarry: --store is missing.*\n"})
	run1(t, world{}, step{args: "migrate up --store mem:", code: exitFailed, stderr: `tarry: migrate: .*a mem: store has no tables to migrate.*\n`})
	run1(t, world{}, step{args: "migrate up --store nowhere:", code: exitUsage, stderr: `tarry: .*no engine has the scheme "nowhere".*\n`})
	run1(t, world{}, step{args: "migrate print --store postgres:///?schema=x", stdout: `.*"x"."message".*`})
	for _, store := range []string{"postgres", "mysql"} {
		run1(t, world{}, step{args: "migrate status --store " + store + "://127.0.0.1:1/x", code: exitUnavailable, stderr: `tarry: migrate: .*127.0.0.1:1.*\n`})
	}
}

func migrates(t *testing.T, store, table string) {
	w := world{env: []string{"TARRY_STORE=" + store}}
	for _, s := range []step{
		{args: "queues", code: exitUsage, stderr: `tarry: open: invalid \(.*there is no store tarry; run tarry migrate up --store URL.*\n`},
		{args: "migrate status", stdout: `VERSION  APPLIED  MIGRATION\n1  -  00001_tables.sql\n`},
		{args: "migrate status --json", stdout: `{"version":1,"applied":null,"migration":"00001_tables.sql"}\n`},
		{args: "migrate up", stdout: "applied version 1\n"},
		{args: "migrate up", stdout: "there was nothing to do\n"},
		{args: "migrate up --json", stdout: ""},
		{args: "migrate status", stdout: `VERSION  APPLIED  MIGRATION\n1  TIME  00001_tables.sql\n`},
		{args: "migrate status --json", stdout: `{"version":1,"applied":"TIME","migration":"00001_tables.sql"}\n`},
		{args: "queues", stdout: "QUEUE.*\n"},
		{args: "push mail x --key k", stdout: `.*\n`},
		{args: "get mail k", stdout: `.*\n`},
		{args: "migrate down", code: exitUsage, stderr: `tarry: --to is missing .*\n`},
		{args: "migrate down --to 0", code: exitUsage, stderr: `tarry: this would remove the store and all its messages for good, and nobody is there to ask \(confirm with --yes\)\n`},
		{args: "migrate down --to 0 --yes --json", stdout: `{"outcome":"taken back","version":1}\n`},
		{args: "migrate print", stdout: `-- The table of versions.*CREATE TABLE (IF NOT EXISTS )?` + table + `.*\n`},
		{args: "migrate print --from 1"},
	} {
		run1(t, w, s)
	}
}
