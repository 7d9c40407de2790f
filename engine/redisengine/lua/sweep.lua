-- sweep brings the shard up to now: leases that are over lapse, and of RARE what
-- has come due takes its turn. It returns whether there is more to do than one script
-- should, else when the next lease ends and whether any message is out of the usual.
local function sweep()
	local head = earliest(LEASES)
	if head <= now then
		local over = call('ZRANGEBYSCORE', LEASES, '-inf', now, 'LIMIT', 0, CHUNK)
		for _, id in ipairs(over) do
			if not messages().present(id) then call('ZREM', LEASES, id) end
		end
		if #over == CHUNK then return true end
		head = earliest(LEASES)
	end
	if call('EXISTS', RARE, READY) == 0 then return false, head, false end
	local M = messages()
	-- After the clock has stepped back, what is not due any more waits again.
	local early = call('ZRANGEBYSCORE', READY, '(' .. now, '+inf', 'LIMIT', 0, CHUNK)
	for _, id in ipairs(early) do
		local m = M.find(id)
		if m then
			M.leave(m)
			call('ZADD', RARE, m.due, id)
		else
			call('ZREM', READY, id)
		end
	end
	local due = call('ZRANGEBYSCORE', RARE, '-inf', now, 'LIMIT', 0, CHUNK)
	for _, id in ipairs(due) do
		local m = M.present(id)
		call('ZREM', RARE, id)
		if m then
			call('ZADD', READY, m.due, id)
			call('ZADD', TURN, m.priority, M.turn(m))
		end
	end
	return #early == CHUNK or #due == CHUNK, head, true
end

-- paused returns until when the shard is paused, math.huge for good; nil: it is not.
-- till is what META says of it.
local function paused(till)
	if not till then return nil end
	if till == 'inf' then return math.huge end
	till = tonumber(till)
	if till > now then return till end
	call('HDEL', META, 'paused')
	return nil
end
