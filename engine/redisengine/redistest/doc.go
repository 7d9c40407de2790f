// Package redistest starts real Redis servers that belong to one test: a single
// one, a cluster, a master with replicas and sentinels, and a proxy that loses
// connections. Each listens on loopback ports of its own, keeps its data in the
// test's temporary folder, and ends with the test, or with its process.
//
// The methods fail the test when they fail, so call them from its goroutine.
package redistest
