// Package pgtest starts real PostgreSQL servers that belong to one test, or one that the
// tests of a process share: a single one, one with a streaming replica, a PgBouncer before
// one. Package servertest has what is alike for servers of all kinds.
//
//	func TestMain(m *testing.M) { leaktest.Main(pgtest.Main(m)) }
//
//	url := pgtest.Shared(t)  // an empty database of the shared server
//	s := pgtest.Start(t)     // a server to be killed, paused and set up as one likes
//	url = s.Database()       // an empty database of it
//
// The servers trust everybody; a connection without a user is that of the superuser
// postgres. Where the tests are root, the user postgres runs the servers, or nobody.
package pgtest
