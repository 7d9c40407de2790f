-- Describes a new store, or tells how an old one is described: KEYS is its
-- description, ARGV the format and how many shards a new one has. Answers both.
redis.call('HSETNX', KEYS[1], 'format', ARGV[1])
redis.call('HSETNX', KEYS[1], 'shards', ARGV[2])
return redis.call('HMGET', KEYS[1], 'format', 'shards')
