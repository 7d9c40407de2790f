// Package sqlengine is the engine that stores messages in the tables of a database. It
// implements the rules in Go, on rows that a Store reads, locks and writes in transactions.
// pgengine and mysqlengine are such Stores: they contain the differences between databases.
//
// A call is one transaction, or several if it works in chunks (work.go). It opens the queues
// concerned, reads the database's time, and reads and locks the rows it needs. Each row is
// brought up to date as it is read (state.go): an overdue lease lapses, an expired message is
// removed. The call then changes rows in memory. At the end the work compares them with what
// it read, and writes rows, remembered keys and counts; the Store sends that together with
// the commit. A transaction that lost a key or a lock to another is rolled back and runs
// again from the start.
//
// A transaction looks for a queue's first rows from its low bound on: as far as the process
// knows, nothing is below (lowbounds.go). Whole looks begin at the start of the index instead,
// and find rows that came below the bound unnoticed. Idle leases and a background task make
// them.
//
// A finished message that the history lists is its row, of a kind of its own (history.go). A
// background task drops what it lists no more (trim.go).
//
// The process caches nothing on which correctness depends. It caches the numbers of queues
// (names.go), which never change, reserved ids, and for each queue its last seen settings, its
// low bound and what leases were told (cache.go). It also keeps the leases to release on Close.
package sqlengine
