// Package redistest starts real Redis servers that belong to one test: a single
// one, a cluster, a master with replicas and sentinels, and a proxy before one. What is
// no matter of Redis is in package servertest.
//
// The methods fail the test when they fail, so call them from its goroutine.
package redistest
