// Package migrate changes the tables of a store in PostgreSQL or MySQL from version to
// version. It has its own table of versions; the caller supplies the migrations:
//
//	//go:embed *.sql
//	var files embed.FS
//
//	set, err := migrate.New(migrate.Postgres, "tarry", files)
//	err = set.Check(ctx, db)         // at each opening: ErrOld, ErrNew
//	done, err := set.Up(ctx, db)     // tarry migrate up
//	sql := set.Print(0)              // tarry migrate print
//
// A migration is a file 00001_name.sql, numbered from 1 without gaps. The statements after
// the line "-- migrate: up" apply it, those after "-- migrate: down" revert it. A statement
// ends with a semicolon at the end of a line, except between two $$ (PostgreSQL only). Lines
// that begin with "--" are comments. {{messages}} is the quoted name of the store's table
// messages: "tarry"."messages" in PostgreSQL, where the store is a schema, and
// `tarry_messages` in MySQL, where it is a prefix. {{migrations}} is the table of versions.
//
// A migration and its version are one transaction, unless the line "-- migrate: no
// transaction" comes first. PostgreSQL rolls a failed migration back. MySQL and MariaDB
// commit each statement that changes tables. So a migration for them is one such statement,
// or statements that may run again. Once the cause is removed, another Up continues.
package migrate
