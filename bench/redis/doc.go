// Package redis measures tarry's Redis engine beside asynq: the same work, in the
// same process, on the same private redis-server.
//
// Push, PushBatch and Cancel take b.N messages, so they want -benchtime=100000x.
// The others have a size of their own, given by flags, and want -benchtime=1x.
package redis
