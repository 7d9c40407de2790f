-- some returns ids between two scores, as many as there is room for.
local function some(zset, min, max)
	if room == 0 then return {} end
	local ids = call('ZRANGEBYSCORE', zset, min, max, 'LIMIT', 0, room)
	room = room - #ids
	return ids
end

-- lapses ends expired leases. It returns true if one script cannot end all, else the next
-- deadline.
local function lapses()
	local head = earliest(LEASES)
	if head > now then return false, head end
	for _, id in ipairs(some(LEASES, '-inf', now)) do
		if not messages().present(id) then call('ZREM', LEASES, id) end
	end
	if room == 0 then return true end
	return false, earliest(LEASES)
end

-- sweep applies what has happened up to now: it ends expired leases and moves due messages
-- from RARE to READY. It returns whether there is more to do, else the next deadline and
-- whether RARE or READY have messages.
local function sweep()
	if readonly then return false end
	local busy, head = lapses()
	if busy then return true end
	if call('EXISTS', RARE, READY, FINISHED) == 0 then return false, head, false end
	local M = messages()
	-- After the clock stepped back, messages that are no longer due wait again.
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

-- dispose, after sweep, drops dead and finished messages that exceed the settings, and expired
-- memories.
-- It returns whether there may be more. They are invisible: only counts need to wait for
-- them.
local function dispose(rares)
	if readonly then return false end
	if settings() and messages().cull() then return true end
	if room > 0 and call('EXISTS', ENDED) == 1 then room = room - messages().trim(room) end
	if rares and room > 0 then room = room - messages().forget(room) end
	return room <= 0
end

-- swept is sweep and dispose, for scripts that count.
local function swept()
	local busy, _, rares = sweep()
	return busy or dispose(rares)
end

-- paused returns the end of the pause, math.huge if it is until resumed; nil if there is
-- none. till is META's value.
local function paused(till)
	if not till then return nil end
	if till == 'inf' then return math.huge end
	till = tonumber(till)
	if till > now then return till end
	if not readonly then call('HDEL', META, 'paused') end
	return nil
end
