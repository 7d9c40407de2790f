// Package mysqltest starts real MariaDB servers that belong to one test, or one that the
// tests of a process share. What is alike for servers of all kinds is in
// package servertest.
//
//	func TestMain(m *testing.M) { leaktest.Main(mysqltest.Main(m)) }
//
//	url := mysqltest.Shared(t)  // an empty database of the shared server
//	s := mysqltest.Start(t)     // a server to be killed, paused and set up as one likes
//	url = s.Database()          // an empty database of it
//	db := mysqltest.Open(t, url)
//
// URLs have the form mysql://user:password@host:port/database; DSN makes of one what
// go-sql-driver/mysql takes. The servers' superuser is root, without a password.
//
// The methods fail the test when they fail, so call them from its goroutine.
package mysqltest
