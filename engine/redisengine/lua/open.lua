-- Describes a new store, or tells how an old one is described: KEYS is its
-- description, ARGV the format and how many shards a new one has. Answers both.
tick()
call('HSETNX', KEYS[1], 'format', args[2])
call('HSETNX', KEYS[1], 'shards', args[3])
return call('HMGET', KEYS[1], 'format', 'shards')
