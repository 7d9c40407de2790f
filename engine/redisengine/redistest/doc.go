// Package redistest starts real Redis servers that belong to one test. It starts a single
// server, a cluster, a master with replicas and sentinels, or a proxy in front of a server.
// Package servertest has what is not specific to Redis.
//
// The methods fail the test on errors, so call them from its goroutine.
package redistest
