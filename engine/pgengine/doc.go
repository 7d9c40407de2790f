// Package pgengine stores messages in PostgreSQL 15 or later. Package sqlengine has the rules;
// this package has the statements, the connections, and the notices to other processes by
// LISTEN and NOTIFY.
package pgengine
