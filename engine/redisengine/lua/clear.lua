-- Forgets what is known of a shard that holds nothing, unless it is paused, has
-- something to tell, or was ever configured: settings that set nothing must stand against
-- older ones, which engines that were not used since still know. Answers the clock.
tick()
local meta = call('HMGET', META, 'paused', 'expired', 'died', 'settings')
if call('EXISTS', DUE, RARE, READY, LEASES, DEAD, FINISHED) == 0 and not (paused(meta[1]) or meta[2] or meta[3] or meta[4]) then
	call('DEL', META)
end
return {us, raw}
