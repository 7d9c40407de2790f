-- Creates or reads the description of a store. KEYS: the description. ARGV: the format and
-- the number of shards of a new store. Answers both.
tick()
call('HSETNX', KEYS[1], 'format', args[2])
call('HSETNX', KEYS[1], 'shards', args[3])
return call('HMGET', KEYS[1], 'format', 'shards')
