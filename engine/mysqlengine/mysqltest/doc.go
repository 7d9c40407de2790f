// Package mysqltest starts real MariaDB or MySQL servers, for one test or shared by the tests
// of a process. Package servertest has what is not specific to them.
//
//	func TestMain(m *testing.M) { leaktest.Main(mysqltest.Main(m)) }
//
//	url := mysqltest.Shared(t)  // an empty database of the shared server
//	s := mysqltest.Start(t)     // a server to be killed, paused and set up as one likes
//	url = s.Database()          // an empty database of it
//	db := mysqltest.Open(t, url)
//
// URLs have the form mysql://user:password@host:port/database. DSN converts them for
// go-sql-driver/mysql. The servers' superuser is root, without a password.
//
// The methods fail the test on errors, so call them from its goroutine.
package mysqltest
