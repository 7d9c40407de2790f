package mysqlengine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/tarryhq/tarry/engine"
	"github.com/tarryhq/tarry/engine/internal/sqlengine"
)

// conflicts are the errors of transactions that others undid and that may run again.
var conflicts = map[uint16]error{
	1213: sqlengine.ErrDeadlock,
	1020: sqlengine.ErrDeadlock, // record changed since it was read
	3101: sqlengine.ErrDeadlock, // a conflict in a replication group
	1062: sqlengine.ErrAgain,    // duplicate key
	1242: sqlengine.ErrAgain,    // more than one row in a subquery: a key is remembered by now
	1690: sqlengine.ErrAgain,    // a number out of range: the queue remembers keys by now
	1205: sqlengine.ErrBusy,     // others held a lock for too long
	3572: sqlengine.ErrBusy,     // likewise with NOWAIT, where any time is too long
}

// tookTooLong reports whether a statement exceeded its time limit.
func tookTooLong(err error) bool {
	n := numberOf(err)
	return n == 1969 || n == 3024
}

func numberOf(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// refusesSeveral reports whether a connection takes only one statement at a time. Several are
// then a syntax error, or cannot be prepared.
func refusesSeveral(err error) bool {
	n := numberOf(err)
	return n == 1064 || n == 1295
}

// readOnly reports whether a server is read-only.
func readOnly(err error) bool {
	switch numberOf(err) {
	case 1290, 1792, 1836, 1874: // read_only, the session's transactions, the server's InnoDB
		return true
	}
	return false
}

// broke reports whether the server or the connection ended, perhaps after a commit.
func broke(e *mysql.MySQLError) bool {
	switch e.Number {
	case 1053, 1080, 1180, 1927: // shutdown, forcing the thread to end, error during commit, killed
		return true
	}
	return false
}

// cut reports whether the connection has ended, which rolled back everything uncommitted.
func cut(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn)
}

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
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		if committing && broke(e) {
			return &engine.Error{Op: op, Err: engine.ErrUnavailable, Hint: engine.HintUnknown}
		}
		return answered(op, e)
	}
	e := &engine.Error{Op: op, Err: engine.ErrUnavailable, Hint: err.Error()}
	if ctx.Err() != nil { // the driver's error may say only that it closed a connection
		e.Err, e.Hint = ctx.Err(), ""
	}
	if committing && !errors.Is(err, driver.ErrBadConn) { // else nothing was sent
		e.Hint = engine.HintUnknown
	}
	return e
}

// answered converts an error of the server to an engine.Error.
func answered(op string, e *mysql.MySQLError) error {
	says := fmt.Sprintf("the database says: %s (%d)", e.Message, e.Number)
	err, hint := engine.ErrUnavailable, says
	switch e.Number {
	case 1040, 1203, 1226: // too many connections: of all, of the user
		hint = "the server has no connection left: raise max_connections, or make the pools smaller; " + says
	case 1021, 1114, 3675: // disk full, table full, tablespace full
		err, hint = engine.ErrNoSpace, "make room on the disk of the server; "+says
	case 1026, 1030: // error writing a file, of a storage engine: 28 is a full disk
		if strings.Contains(e.Message, " 28 ") || strings.Contains(e.Message, "rror: 28") {
			err, hint = engine.ErrNoSpace, "make room on the disk of the server; "+says
		}
	case 1037, 1041: // out of memory
		err, hint = engine.ErrLimit, "give the server more memory; "+says
	case 1205: // lock wait timeout
		hint = "another session held a lock for longer than innodb_lock_wait_timeout or lock_wait_timeout; " + says
	case 1969, 3024: // max_statement_time of MariaDB, max_execution_time of MySQL
		hint = "raise or remove the time limit for statements of tarry's user; " + says
	case 1044, 1142, 1143, 1227: // to a database, a table, a column, of a privilege
		err, hint = engine.ErrForbidden, "the user lacks a right on tarry's tables; "+says
	case 1045, 1698: // access denied
		err, hint = engine.ErrUnauthorized, "check the user and the password; "+says
	case 1049: // unknown database
		err, hint = engine.ErrInvalid, "create the database first; "+says
	case 1054, 1146: // unknown column, no such table
		err, hint = engine.ErrInvalid, "tarry's tables are missing or not of this version: run tarry migrate up; "+says
	case 1153: // got a packet bigger than max_allowed_packet
		err, hint = engine.ErrTooLarge, "raise the server's max_allowed_packet; "+says
	case 1665: // statement-based binary log
		err, hint = engine.ErrInvalid, "set binlog_format to ROW or MIXED; "+says
	case 1290, 1792, 1836, 1874: // read only
		hint = hintReadOnly + "; " + says
	}
	return &engine.Error{Op: op, Err: err, Hint: hint}
}

const hintReadOnly = "the server is read-only: name the one that others replicate from, or set its read_only to OFF"
