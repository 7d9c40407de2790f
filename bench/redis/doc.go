// Package redis compares tarry's Redis engine with asynq: the same work, in the same process,
// on the same private redis-server.
package redis
