// Package sqlengine is the engine that keeps messages in a database's tables: the rules
// of what becomes of a message, in Go, over rows that a Store reads, locks and writes in
// transactions. pgengine and mysqlengine are its Stores: what databases say differently
// is there, what they have in common is here.
//
// A call is one transaction, or a few where it works in chunks. It opens the queues
// concerned, which tells the database's time, reads and locks the rows that it decides
// on, decides, and writes what has changed; the Store sends the writes together with the
// commit. A transaction that met another in the wrong order is begun again.
package sqlengine
