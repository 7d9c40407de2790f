// Package pgtest starts real PostgreSQL servers, for one test or shared by the tests of a
// process. A server may have a streaming replica, or a PgBouncer in front. Package servertest
// has what is not specific to PostgreSQL.
//
//	func TestMain(m *testing.M) { leaktest.Main(pgtest.Main(m)) }
//
//	url := pgtest.Shared(t)  // an empty database of the shared server
//	s := pgtest.Start(t)     // a server to be killed, paused and set up as one likes
//	url = s.Database()       // an empty database of it
//
// The servers trust everyone. A connection without a user is the superuser postgres's. If the
// tests run as root, the user postgres runs the servers, or else the user nobody.
package pgtest
