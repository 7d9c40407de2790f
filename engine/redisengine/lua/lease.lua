-- Leases due messages. ARGV: lease, forget or look; how many at most; the span in
-- microseconds ('' for each message's own); the secret; the most bytes of bodies; and the
-- workers, see take.lua.
--
-- Answers the clock; whether more is ready (2: held back by the settings); whether to call
-- again to sweep; when something happens next; the number of wakes; how many messages have
-- expired and died since last reported; then four values a message. "look" instead answers
-- priority, due and id of each ready message.
tick()
local mode, most = args[4], tonumber(args[5])
local answer = {us, raw, 0, 0, false, 0, 0, 0}
local meta = call('HMGET', META, 'paused', 'wakes', 'expired', 'died', 'settings')
know(meta[5])
local busy, lapses, rares = sweep()
if busy then
	answer[4] = 1
	return answer
end

-- coming returns the first due of a sorted set that is not yet reached.
local function coming(zset)
	local due = call('ZRANGEBYSCORE', zset, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
	return due and tonumber(due) or math.huge
end

-- shown is ready without expired messages, which are dropped. It returns nil if too many
-- expired for one script.
local function shown(n)
	local seen = {}
	while true do
		local ids, dues, priorities = ready(n, rares)
		local dropped = false
		for i = 1, rares and #ids or 0 do
			local id = ids[i]
			if not seen[id] and not messages().waiting(id, dues[i]) then
				dropped, room = true, room - 1
				if room <= 0 then return nil end
			end
			seen[id] = true
		end
		if not dropped then return ids, dues, priorities end
	end
end

answer[6] = tonumber(meta[2] or 0)
local till = paused(meta[1])
if till then
	if till < math.huge then answer[5] = till end
else
	local free = permits(most + 1)
	if mode == 'look' and free > 0 then
		local ids, dues, priorities = shown(math.min(most, free))
		if not ids then
			answer[4] = 1
			return answer
		end
		local n = #answer
		for i = 1, #ids do
			answer[n + 1], answer[n + 2], answer[n + 3] = priorities[i], dues[i], ids[i]
			n = n + 3
		end
		if #ids > 0 then return answer end
	end
	local left, more, held = mode == 'look' and 0 or math.min(most, free), false, false
	local lapse, bytes = lapses, tonumber(args[8])
	local wide = left -- grows when many turn out to be gone
	while left > 0 do
		local ids, dues, _, others = ready(wide, rares)
		more = others
		if #ids == 0 then break end
		local looked, gone, ends = take(answer, ids, dues, left, args[6], args[7], mode == 'forget', bytes)
		if mode ~= 'forget' then lapse = math.min(lapse, ends) end
		left, free = left - gone, free - gone
		given(gone)
		room = room - (looked - gone)
		more = more or looked < #ids
		if gone == looked or looked < #ids or alone then break end
		if room <= 0 then
			if #answer == 8 then
				answer[4] = 1
				return answer
			end
			more = true
			break
		end
		wide = math.min(2 * wide, left + room)
	end
	if free == 0 then
		local ids = shown(1)
		held = not ids or #ids > 0
		more = false
	end
	if more then
		answer[3] = 1
	else
		local next = math.min(earliest(DUE), rares and earliest(RARE) or math.huge, lapse)
		if held then
			answer[3] = 2
			next = math.min(coming(DUE), coming(RARE), lapse)
			if limits.rate > 0 and permits(1) == 0 and not full() then next = math.min(next, gathers()) end
		end
		if next < math.huge then answer[5] = next end
		-- If this client dies, other clients must know when to ask.
		if lapse == next and lapse < lapses then
			answer[6] = wake(lapse)
		end
	end
end
-- Nobody waits for invisible messages, so they are dropped last, within the remaining room.
if dispose(rares) then
	if #answer == 8 then
		answer[4] = 1
		return answer
	end
	answer[3] = 1
end
answer[7] = tonumber(meta[3] or 0) + fallen.expired
answer[8] = tonumber(meta[4] or 0) + fallen.died
if answer[7] + answer[8] > 0 then call('HDEL', META, 'expired', 'died') end
return answer
