// Package mysqlengine stores messages in MySQL 8.0.19, MariaDB 10.6, or later. Package
// sqlengine has the rules; this package has the statements and the connections.
//
// These databases send no notices. A waiting process reads the first messages of its queues
// every Recheck, in one statement. So a message that another process pushes, and that is due
// before all others, is at most Recheck late.
package mysqlengine
