// Package beanstalk serves the queues of a tarry.Client by the protocol of beanstalkd 1.13, so
// that its clients work unchanged. A tube is a queue, a job is a message, and its id is the
// message's.
//
// Each connection has a goroutine that reads commands and carries them out one after another
// (conn.go). Only while it waits for a job does a second goroutine read on, which notices that
// the client has gone (wait.go). Puts that lie in the input together are pushed together
// (put.go). What a connection holds is in held.go: the store knows a lease by its token, the
// client by the job's id. A lease that is over is forgotten here before the store notices.
//
// What beanstalkd keeps of tubes and jobs and the store does not is kept in memory: the
// connections that use a tube, and counters (tubes.go, notes.go).
package beanstalk
