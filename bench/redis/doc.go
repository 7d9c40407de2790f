// Package redis measures tarry's Redis engine beside asynq: the same work, in the
// same process, on the same private redis-server.
package redis
