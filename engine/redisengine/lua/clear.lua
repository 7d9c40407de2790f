-- Deletes META of an empty shard, unless it is paused, has expiries to report, or was ever
-- configured. Even settings that set nothing must override older ones that idle engines still
-- hold. Answers the clock.
tick()
local meta = call('HMGET', META, 'paused', 'expired', 'died', 'settings')
if call('EXISTS', DUE, RARE, READY, LEASES, DEAD, FINISHED, ENDED) == 0 and not (paused(meta[1]) or meta[2] or meta[3] or meta[4]) then
	call('DEL', META)
end
return {us, raw}
