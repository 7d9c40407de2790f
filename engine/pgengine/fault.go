package pgengine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// fault converts an error of the database or the connection to an engine.Error. committing:
// the transaction may have committed.
func fault(ctx context.Context, op string, err error, committing bool) error {
	if err == nil || errors.Is(err, sqlengine.ErrGone) {
		return err
	}
	var known *engine.Error
	if errors.As(err, &known) {
		return err
	}
	var pg *pgconn.PgError
	isPg := errors.As(err, &pg)
	if isPg && pg.Code == "57014" && ctx.Err() != nil { // query_canceled, by the engine itself
		err, isPg = ctx.Err(), false
	}
	var connecting *pgconn.ConnectError
	switch {
	case isPg:
		e := &engine.Error{Op: op, Err: engine.ErrUnavailable, Hint: "PostgreSQL says: " + pg.Message + " (" + pg.Code + ")"}
		if m, ok := meanings[pg.Code]; ok {
			e.Err = m.err
			if m.hint != "" {
				e.Hint += "; " + m.hint
			}
		}
		if committing && broke(pg) {
			e.Hint = engine.HintUnknown
		}
		return e
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		e := &engine.Error{Op: op, Err: err}
		if committing {
			e.Hint = engine.HintUnknown
		}
		return e
	case errors.As(err, &connecting):
		return &engine.Error{Op: op, Err: engine.ErrUnavailable, Hint: oneLine(err) + "; check that PostgreSQL runs there"}
	case committing:
		return &engine.Error{Op: op, Err: engine.ErrUnavailable, Hint: engine.HintUnknown}
	}
	return &engine.Error{Op: op, Err: engine.ErrUnavailable, Hint: oneLine(err)}
}

// broke reports whether the server or the connection ended, perhaps after a commit. The
// severity is then FATAL or PANIC, even from a PgBouncer that lost the server.
func broke(pg *pgconn.PgError) bool {
	return pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC" || pg.Severity == "FATAL"
}

// codeOf returns the code of an error of the server; "": it is none.
func codeOf(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// idled reports whether the server closed an idle connection, which therefore never got a
// commit.
func idled(err error) bool {
	code := codeOf(err)
	return code == "25P03" || code == "57P05" // in a transaction, or without one
}

// conflicts are the errors of transactions that others undid and that may run again.
var conflicts = map[string]error{
	"40001": sqlengine.ErrDeadlock, // serialization_failure
	"40P01": sqlengine.ErrDeadlock, // deadlock_detected
	"23505": sqlengine.ErrAgain,    // unique_violation
	"22012": sqlengine.ErrAgain,    // division_by_zero: see statements.check
	"55P03": sqlengine.ErrBusy,     // lock_not_available
}

// oneLine joins the distinct lines of an error. A connection error has a line for each
// attempt, with TLS and without.
func oneLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

const otherTables = "tarry's tables are missing or not of this version: run tarry migrate up"

// meanings maps the database's error codes to errors and hints for callers.
var meanings = map[string]struct {
	err  error
	hint string
}{
	"42703": {engine.ErrInvalid, otherTables}, // undefined_column
	"42P01": {engine.ErrInvalid, otherTables}, // undefined_table
	"428C9": {engine.ErrInvalid, otherTables}, // generated_always
	"53100": {engine.ErrNoSpace, "make room on the disk of the server"},
	"53200": {engine.ErrLimit, "give the server more memory"},
	"53300": {engine.ErrUnavailable, "raise max_connections of the server, or give processes smaller pools by the option pool"},
	"55P03": {engine.ErrUnavailable, "another session held a lock for longer than lock_timeout"},
	"57014": {engine.ErrUnavailable, "give tarry's user a longer statement_timeout, or none, if it was that"},
	"25P03": {engine.ErrUnavailable, "give tarry's user a longer idle_in_transaction_session_timeout"},
	"57P05": {engine.ErrUnavailable, "give tarry's user a longer idle_session_timeout"},
	"42501": {engine.ErrForbidden, "give the user the rights that docs/engines/sql.md names"},
	"28P01": {engine.ErrUnauthorized, ""},
	"28000": {engine.ErrUnauthorized, ""},
	"3D000": {engine.ErrInvalid, "create the database, or name another in the URL"},
	"42704": {engine.ErrInvalid, "neither tarry nor PostgreSQL knows such an option of the URL; tarry has history, history_max, migrate, pace, password_file, pool and schema"},
	"22021": {engine.ErrInvalid, encodings}, // character_not_in_repertoire
	"22P05": {engine.ErrInvalid, encodings}, // untranslatable_character
	"22023": {engine.ErrInvalid, "an option of the URL has a value that PostgreSQL refuses"},
	"08P01": {engine.ErrUnavailable, "a PgBouncer takes only the options that its ignore_startup_parameters names, and needs the server"},
	"25006": {engine.ErrUnavailable, readOnly},
}

const encodings = "database and sessions need the encoding UTF8; close the store and open it anew"

const readOnly = "the server is read-only: name the primary, or all servers and target_session_attrs=read-write"
