-- some returns as many ids between two scores as there is room for.
local function some(zset, min, max)
	if room == 0 then return {} end
	local ids = call('ZRANGEBYSCORE', zset, min, max, 'LIMIT', 0, room)
	room = room - #ids
	return ids
end

-- lapses ends leases that are over. It returns whether there are more than one script should
-- end, else when the next lease ends.
local function lapses()
	local head = earliest(LEASES)
	if head > now then return false, head end
	for _, id in ipairs(some(LEASES, '-inf', now)) do
		if not messages().present(id) then call('ZREM', LEASES, id) end
	end
	if room == 0 then return true end
	return false, earliest(LEASES)
end

-- sweep brings what lives up to now: leases that are over lapse, and of RARE what has come
-- due takes its turn. It returns whether there is more to do than one script should, else
-- when the next lease ends and whether there is more than messages of the usual kind.
local function sweep()
	if still then return false end
	local busy, head = lapses()
	if busy then return true end
	if call('EXISTS', RARE, READY, FINISHED) == 0 then return false, head, false end
	local M = messages()
	-- After the clock has stepped back, what is not due any more waits again.
	for _, id in ipairs(some(READY, '(' .. now, '+inf')) do
		local m = M.find(id)
		if m then
			M.leave(m)
			call('ZADD', RARE, m.due, id)
		else
			call('ZREM', READY, id)
		end
	end
	for _, id in ipairs(some(RARE, '-inf', now)) do
		local m = M.present(id)
		call('ZREM', RARE, id)
		if m then
			call('ZADD', READY, m.due, id)
			call('ZADD', TURN, m.priority, M.turn(m))
		end
	end
	return room == 0, head, true
end

-- dispose drops the dead that the settings do not let stay, and memories whose time is
-- over, after sweep. It returns whether there may be more of them than one script should
-- drop: nobody sees them, so that nothing need wait until they are gone, but counts.
local function dispose(rares)
	if still then return false end
	if settings() and messages().cull() then return true end
	if rares and room > 0 then room = room - messages().forget(room) end
	return room <= 0
end

-- swept is sweep and dispose, for scripts that count.
local function swept()
	local busy, _, rares = sweep()
	return busy or dispose(rares)
end

-- paused returns until when the shard is paused, math.huge for good; nil: it is not.
-- till is what META says of it.
local function paused(till)
	if not till then return nil end
	if till == 'inf' then return math.huge end
	till = tonumber(till)
	if till > now then return till end
	if not still then call('HDEL', META, 'paused') end
	return nil
end
