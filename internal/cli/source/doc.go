// Package source reads what other systems delay: tasks of asynq, members of a sorted set in
// Redis, rows of a table in PostgreSQL or MySQL. tarry copy pushes them to a store.
//
// A source may be live. Remove therefore takes away only what is still as Next returned it.
// The caller pushes first and removes then, so a crash in between leaves an entry in both
// places; its key recognises it when the copy runs again.
package source
