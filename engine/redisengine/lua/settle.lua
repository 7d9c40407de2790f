-- Settles leases: ARGV is the clock, the channel and the hint for those who sleep,
-- then five for each: id, nonce, what to do, when or for how long, reason. Answers
-- the clock, the soonest due if others were woken, and for each {mark, due or
-- deadline}, where the mark may also be G for gone, and 'lost'; to a retry without a time, as long as
-- attempts are left, {'B', attempt, record}: the client knows the backoff.
local FIVE = 5
watch()
local ids = {}
for i = 4, #ARGV, FIVE do ids[#ids + 1] = ARGV[i] end
local pasts = call('HMGET', STATE, unpack(ids))

-- Acks of leases, the common case, gather for a few variadic calls.
local acked, keys, bodies = {}, {}, false

-- late settles any other way, one by one.
local function late(id, nonce, what, arg, reason)
	local m = present(id)
	if not m or m.nonce ~= nonce then return {'lost', 0} end
	local last = m.attempt >= m.max
	local revives = what == 'snooze' or what == 'release' or what == 'extend' or what == 'retry' and not last
	if m.mark == 'D' and revives and m.key ~= '' then
		if named('', m.key) then return {'lost', 0} end
		call('HSET', KEY, m.key, m.id)
	end
	if what == 'ack' then
		drop(m)
		return {'G', 0}
	end
	if what == 'retry' and not last and arg == '' then
		return {'B', m.attempt, m.record}
	end
	if what == 'bury' or what == 'retry' and last then
		m.nonce = ''
		die(m, now, reason)
		return {'D', 0}
	end
	leave(m)
	m.died = 0
	if what == 'extend' then
		m.mark, m.deadline = 'L', deadline(arg == '' and m.ttr or tonumber(arg))
		call('ZADD', LEASES, m.deadline, m.id)
		save(m)
		return {'L', m.deadline}
	end
	m.nonce, m.deadline = '', 0
	if what == 'retry' then
		m.due, m.reason = resolve(arg), reason
	else
		m.attempt = math.max(0, m.attempt - 1)
		if what == 'snooze' then m.due = resolve(arg) end
	end
	wait(m)
	save(m)
	return {'W', m.due}
end

local answer, done = {us, raw, false}, {}
for i = 4, #ARGV, FIVE do
	local id, nonce, what = ARGV[i], ARGV[i + 1], ARGV[i + 2]
	local past = pasts[(i + 1) / FIVE]
	local mark, flags, had, key, _
	if past then mark, flags, _, _, _, _, _, _, had, key = struct.unpack(PAST, past) end
	if not past or done[id] then
		local open = past and done[id] ~= 'gone'
		answer[#answer + 1] = open and late(id, nonce, what, ARGV[i + 3], ARGV[i + 4]) or {'lost', 0}
	elseif had ~= nonce then
		answer[#answer + 1] = {'lost', 0}
	elseif what == 'ack' and mark == 'L' then
		acked[#acked + 1] = id
		if key ~= '' then keys[#keys + 1] = key end
		if flags >= IS_LARGE then bodies = true end
		done[id] = 'gone'
		answer[#answer + 1] = {'G', 0}
	else
		local settled = late(id, nonce, what, ARGV[i + 3], ARGV[i + 4])
		-- A retry that will come again with its backoff has the lease already.
		done[id] = settled[1] == 'B' and 'gone' or 'seen'
		answer[#answer + 1] = settled
	end
end
if #acked > 0 then
	call('ZREM', LEASES, unpack(acked))
	call('HDEL', STATE, unpack(acked))
	call('HDEL', MSG, unpack(acked))
	if bodies then call('HDEL', BODY, unpack(acked)) end
	if #keys > 0 then call('HDEL', KEY, unpack(keys)) end
end
answer[3] = woken(ARGV[2], ARGV[3])
return answer
