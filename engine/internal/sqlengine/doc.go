// Package sqlengine is the engine that keeps messages in a database's tables: the rules
// of what becomes of a message, in Go, over rows that a Store reads, locks and writes in
// transactions. pgengine is such a Store: what databases say differently is there, what
// they have in common is here.
//
// A call is one transaction, or a few where it works in chunks: a work (work.go). It opens
// the queues concerned, which tells the database's time, and reads and locks the rows that
// it decides on. Each row is brought to the present as it is read (state.go): leases that
// are over have lapsed, what has expired is gone. Then the call decides, on rows in memory,
// and in the end the work compares what was read with what is, and writes rows, remembered
// keys and counts; the Store sends that together with the commit. Others can undo a
// transaction, by a key that they took first or a lock: it is then run again from nothing.
//
// A transaction looks for what a queue has first from its floor on, below which there is
// nothing as far as the process knows (floors.go). Whole looks, which begin at the start, find
// what came below the floor without its knowing: an idle lease makes them, or they are made
// beside the leases (whole.go).
//
// Nothing is kept in the process that has to be right: numbers of queues (names.go), which
// never change, reserved ids, what was last seen of queues (seen.go), their floors, what was
// told of queues (told.go) and which leases to give back (held.go).
package sqlengine
