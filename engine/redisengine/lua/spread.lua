-- Brings settings, which ARGV has, to a shard that has older ones. Answers the clock, and
-- whether to call again because there was too much to do.
tick()
if settings() and limits.revision >= unpacked('>d', args[4]) then return {us, raw, 0} end
if lapses() or messages().cull() then return {us, raw, 1} end
call('HSET', META, 'settings', args[4])
know(args[4])
if limits.rate == 0 then call('HDEL', META, 'bucket') end
messages().cull()
wake(now)
return {us, raw, 0}
