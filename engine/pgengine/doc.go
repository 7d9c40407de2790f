// Package pgengine keeps messages in PostgreSQL 15 or later. The rules are those of
// package sqlengine; here are the statements, the connections, and the waking of other
// processes by LISTEN and NOTIFY.
package pgengine
