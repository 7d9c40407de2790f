// Package migrate brings the tables of a store in PostgreSQL or MySQL from version to
// version. It knows no table but that of the versions; the migrations are given to it:
//
//	//go:embed *.sql
//	var files embed.FS
//
//	set, err := migrate.New(migrate.Postgres, "tarry", files)
//	err = set.Check(ctx, db)         // at each opening: ErrOld, ErrNew
//	done, err := set.Up(ctx, db)     // tarry migrate up
//	sql := set.Print(0)              // tarry migrate print
//
// A migration is a file 00001_what.sql, numbered from 1 without gaps, in the form of
// goose: what follows "-- +goose Up" goes up, what follows "-- +goose Down" down again.
// Each statement ends a line with a semicolon; one with semicolons inside stands between
// "-- +goose StatementBegin" and "-- +goose StatementEnd", which only PostgreSQL may have.
// The files are text/template texts in which {{name "messages"}} is what the store calls
// messages, quoted: "tarry"."messages" where the store's name is a schema, in PostgreSQL,
// and `tarry_messages` where it is a prefix, in MySQL. {{name "migrations"}} is the table
// of the versions. A file that says "-- +goose NO TRANSACTION" runs without one.
//
// On PostgreSQL a migration that fails is rolled back. MySQL and MariaDB commit each
// statement that changes tables at once, so there a migration is one such statement, or
// each can be run again without harm: what failed is then mended by another Up.
package migrate
