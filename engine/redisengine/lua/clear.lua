-- Forgets what is known of a shard that holds nothing, unless it is paused or has
-- something to tell. Answers the clock.
tick()
local meta = call('HMGET', META, 'paused', 'expired', 'died')
if call('EXISTS', DUE, RARE, READY, LEASES, DEAD, FINISHED) == 0 and not (paused(meta[1]) or meta[2] or meta[3]) then
	call('DEL', META)
end
return {us, raw}
