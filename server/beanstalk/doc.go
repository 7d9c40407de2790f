// Package beanstalk serves the queues of a tarry.Client by the protocol of beanstalkd 1.13, so
// that its clients work unchanged. A tube is a queue, a job is a message, and its id is the
// message's.
//
// Each connection has a goroutine that reads commands and carries them out one after another
// (conn.go). While it waits for a job it reads nothing, and a second goroutine notices when the
// client has gone (reserve.go). Puts that arrive together are pushed together (put.go). The jobs that
// a connection holds are in held.go: the store knows a lease by its token, the client by the job's
// id. A job times out here before its lease ends in the store.
//
// What beanstalkd keeps of tubes and jobs and the store does not is kept in memory: the
// connections that use a tube, and counters (tubes.go, notes.go).
package beanstalk
