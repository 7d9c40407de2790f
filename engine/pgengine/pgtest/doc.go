// Package pgtest starts real PostgreSQL servers that belong to one test, or one that the
// tests of a process share: a single one, one with a streaming replica, a proxy or a
// PgBouncer before one. What is no matter of PostgreSQL is in package servertest.
//
//	func TestMain(m *testing.M) { leaktest.Main(pgtest.Main(m)) }
//
//	url := pgtest.Shared(t)  // an empty database of the shared server
//	s := pgtest.Start(t)     // a server to be killed, paused and set up as one likes
//	url = s.Database()       // an empty database of it
//
// The servers trust everybody; who connects as nobody else is the superuser postgres.
// Where the tests are root, the user postgres runs the servers, or nobody.
//
// The methods fail the test when they fail, so call them from its goroutine.
package pgtest
