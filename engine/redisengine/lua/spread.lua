-- Updates a shard with older settings. ARGV: the settings. Answers the clock, and whether to
-- call again.
tick()
if settings() and limits.revision >= unpacked('>d', args[4]) then return {us, raw, 0} end
if lapses() or messages().cull() then return {us, raw, 1} end
call('HSET', META, 'settings', args[4])
know(args[4])
if limits.rate == 0 then call('HDEL', META, 'bucket') end
messages().cull()
wake(now)
return {us, raw, 0}
