package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tarryhq/tarry/engine"
)

func (p *Program) migrateCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "migrate up|down|status|print",
		Short: "Create and change the tables of a store in PostgreSQL or MySQL",
		Long: `A store in a database is a set of tables with a version, which must match the program.
Migrate brings the tables to that version. Opening a store with migrate=true in its URL
does so too.`,
	}, "usage: tarry migrate up|down|status|print --store URL",
		p.migrateUpCommand(), p.migrateDownCommand(), p.migrateStatusCommand(), p.migratePrintCommand())
}

// asksNothing is the timeout of a command that needs no database.
const asksNothing = -1

// migration makes cmd a command about the migrations of a store.
func (p *Program) migration(timeout time.Duration, cmd *cobra.Command, do func(ctx context.Context, store engine.Migrations) error) *cobra.Command {
	var raw string
	cmd.Args = exactly()
	storeFlag(cmd, &raw, "", "the store's URL, such as postgres://user@host/database")
	if timeout != asksNothing {
		timeoutFlag(cmd, &timeout, timeout, "give up after this long; 0: never")
		p.jsonFlag(cmd, "print JSON, one object a line")
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if raw == "" {
			return usagef("such as --store postgres://user@host/database", "--store is missing")
		}
		store, err := engine.OpenMigrations(raw)
		if err != nil {
			return err
		}
		defer store.Close()
		ctx, cancel := withTimeout(cmd.Context(), timeout)
		defer cancel()
		return do(ctx, store)
	}
	return cmd
}

func (p *Program) migrateUpCommand() *cobra.Command {
	return p.migration(0, &cobra.Command{
		Use:     "up",
		Short:   "Create the tables, or bring them to the current version",
		Long:    `Up applies the missing migrations. Several processes may run it at once. Messages stay.`,
		Example: `  tarry migrate up --store 'postgres://owner@host/database?schema=tarry'`,
	}, func(ctx context.Context, store engine.Migrations) error {
		done, err := store.Up(ctx)
		return p.showMigrated("applied", done, err)
	})
}

func (p *Program) migrateDownCommand() *cobra.Command {
	var to int64
	var cmd *cobra.Command
	cmd = p.migration(0, &cobra.Command{
		Use:   "down",
		Short: "Take the tables back to an older version, or remove them",
		Long: `Down undoes the migrations after the version --to, and deletes the messages they hold:
version 0 removes the store. It asks first, or needs --yes.`,
		Example: `  tarry migrate down --to 0 --store postgres://owner@host/database`,
	}, func(ctx context.Context, store engine.Migrations) error {
		if to < 0 {
			return usagef("tarry migrate status shows the versions", "--to is missing")
		}
		what := fmt.Sprintf("take the store back to version %d", to)
		if to == 0 {
			what = "remove the store and all its messages for good"
		}
		if err := p.confirm(cmd.Context(), what); err != nil {
			return err
		}
		done, err := store.Down(ctx, to)
		return p.showMigrated("taken back", done, err)
	})
	cmd.Flags().Int64Var(&to, "to", -1, "the version to go back to")
	p.yesFlag(cmd)
	return cmd
}

// showMigrated shows what was done, even if it then failed.
func (p *Program) showMigrated(outcome string, done []int64, err error) error {
	o := p.printer()
	for _, version := range done {
		o.line(migrated{outcome, version}, "%s version %d", outcome, version)
	}
	if len(done) == 0 && err == nil {
		o.say("there was nothing to do")
	}
	return cmp.Or(err, o.flush())
}

type migrated struct {
	Outcome string `json:"outcome"`
	Version int64  `json:"version"`
}

func (p *Program) migrateStatusCommand() *cobra.Command {
	return p.migration(defaultTimeout, &cobra.Command{
		Use:   "status",
		Short: "Show the versions of the tables",
	}, func(ctx context.Context, store engine.Migrations) error {
		all, err := store.Status(ctx)
		if err != nil {
			return err
		}
		o := p.printer()
		o.head("VERSION", "APPLIED", "MIGRATION")
		for _, v := range all {
			s := versionStatus{Version: v.Version, Migration: v.File}
			applied := "-"
			if !v.Applied.IsZero() {
				s.Applied, applied = new(v.Applied.UTC()), formatTime(v.Applied)
			}
			o.row(s, v.Version, applied, cmp.Or(v.File, "of a newer tarry"))
		}
		return o.flush()
	})
}

// versionStatus is the JSON of a row of migrate status.
type versionStatus struct {
	Version   int64      `json:"version"`
	Applied   *time.Time `json:"applied"`
	Migration string     `json:"migration"`
}

func (p *Program) migratePrintCommand() *cobra.Command {
	var from int64
	cmd := p.migration(asksNothing, &cobra.Command{
		Use:   "print",
		Short: "Print the SQL that up runs, to apply it in another way",
		Long: `Print writes the SQL that brings a store from the version --from to the current one. It
does not connect to the database; only the scheme and the schema of the URL matter.`,
		Example: `  tarry migrate print --store 'postgres:///?schema=tarry' > tarry.sql`,
	}, func(_ context.Context, store engine.Migrations) error {
		_, err := fmt.Fprint(p.Stdout, store.Print(from))
		return err
	})
	cmd.Flags().Int64Var(&from, "from", 0, "the version of the store; 0: there is no store")
	return cmd
}
