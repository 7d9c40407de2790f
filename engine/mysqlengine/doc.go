// Package mysqlengine keeps messages in MySQL 8.0.19 or MariaDB 10.6, or later ones. The rules
// are those of package sqlengine; here are the statements and the connections.
//
// These databases wake nobody. A process that waits looks every Recheck at what its queues
// have first, in one statement, and sleeps until that is due: a push by another process
// whose message is due sooner is met at most Recheck late.
package mysqlengine
