package mysqlengine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/tarryhq/tarry/engine"
)

// undone reports whether an error is that of a transaction which may be run again.
func undone(err error) bool {
	switch numberOf(err) {
	case 1213, 1020, // deadlock, record changed since it was read
		1062, // duplicate key
		1242: // more than one row in a subquery: a key has come to be remembered
		return true
	}
	return false
}

// busy reports whether an error says that others hold a lock: for too long, or at all.
func busy(err error) bool {
	n := numberOf(err)
	return n == 1205 || n == 3572
}

// tookTooLong reports whether an error says that a statement took longer than it may.
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

// refusesSeveral reports whether an error says that a connection takes one statement at a
// time: by the syntax, or as they cannot be prepared.
func refusesSeveral(err error) bool {
	n := numberOf(err)
	return n == 1064 || n == 1295
}

// cut reports whether an error is that of a connection, which has ended with all that was
// not committed.
func cut(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn)
}

// fault makes an engine.Error of what the database or the way to it says. committing: the
// call may have been carried out all the same.
func fault(ctx context.Context, op string, err error, committing bool) error {
	if err == nil {
		return nil
	}
	var known *engine.Error
	if errors.As(err, &known) {
		return err
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return answered(op, e)
	}
	e := &engine.Error{Op: op, Err: engine.ErrUnavailable, Hint: err.Error()}
	if ctx.Err() != nil { // the driver may say no more than that it gave a connection up
		e.Err, e.Hint = ctx.Err(), ""
	}
	if committing && !errors.Is(err, driver.ErrBadConn) { // then nothing was sent
		e.Hint = engine.HintUnknown
	}
	return e
}

// answered makes an engine.Error of an answer of the server.
func answered(op string, e *mysql.MySQLError) error {
	says := fmt.Sprintf("the database says: %s (%d)", e.Message, e.Number)
	err, hint := engine.ErrUnavailable, says
	switch e.Number {
	case 1040, 1203, 1226: // too many connections: of all, of the user
		hint = "the server has no connection left: raise max_connections, or make the pools smaller; " + says
	case 1021, 1114, 3675, 1041, 1037: // disk full, table full, tablespace full, out of memory
		err, hint = engine.ErrLimit, "the server is full: free some of its disk or memory; "+says
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
	case 1290, 1792, 1836: // read only
		hint = "the server takes no writes at present: is it a replica? " + says
	}
	return &engine.Error{Op: op, Err: err, Hint: hint}
}
