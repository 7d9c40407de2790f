// Package redisengine keeps messages in Redis 7 or later: one server, one behind
// Sentinel, or a Redis Cluster.
//
// A queue is spread over shards (shard.go). All keys of a shard are in one hash
// slot, and each call on it is one Lua script (lua/, script.go) that does its work
// for many messages at once, atomically, by the server's clock. A message's key
// decides its shard, so that whoever knows the key finds it; its id names the shard
// too. A script reads and writes O(log n) of a shard, never all of it.
//
// Nobody polls. Each answer of a shard says when something happens next there; the
// engine remembers it and asks only shards whose time has come. A push that becomes
// the first to happen tells the engines that watch (watch.go), and since such a hint
// may be lost, no shard goes unasked for longer than [Recheck].
//
// Follow a message: push.go, lease.go, settle.go; each has its script of the same
// name. How messages are laid out in Redis is in docs/formats/redis.md.
package redisengine
