// Package redisengine stores messages in Redis 7 or later: one server, one with Sentinel, or
// a Redis Cluster.
//
// A queue is spread over shards (shard.go). All keys of a shard are in one hash slot. Each
// call on a shard is one Lua script (lua/, script.go), which handles many messages at once,
// atomically, by the server's clock. A message's key determines its shard, and so does its
// id. A script reads and writes O(log n) of a shard, never all of it.
//
// The engine does not poll. Each answer of a shard says when its next message is due, and
// the engine asks a shard only when that time has come. A push that becomes the first due
// publishes a hint to the engines that watch (watch.go). Hints can be lost, so every shard
// is asked at least once every [Recheck].
//
// To follow a message, read push.go, lease.go and settle.go with their scripts of the same
// name. docs/formats/redis.md describes the layout in Redis.
package redisengine
