-- Settles leases: ARGV has five for each: id, nonce, what to do, when or for how long, reason. Answers
-- the clock, the soonest due if others were woken, and for each 0 if the lease is
-- lost, 1 if the message is gone, else {mark, due or deadline}; to a retry without a
-- time, as long as attempts are left, {'B', attempt, record}: the client knows the
-- backoff.
local FIVE = 5
if told == nil then tick() end
local ids, n = {}, 0
for i = 4, #args, FIVE do
	n = n + 1
	ids[n] = args[i]
end
if told ~= nil then
	local answer = {us, raw, told}
	for i = 1, n do answer[i + 3] = 1 end
	return answer
end
local pasts = call('HMGET', STATE, unpack(ids))
local before = math.huge
for i = 6, #args, FIVE do
	if args[i] ~= 'ack' then
		before = first()
		break
	end
end

-- late settles in any other way than the common one.
local function late(id, nonce, what, arg, reason)
	local M = messages()
	local m = M.present(id)
	if not m or m.nonce ~= nonce then return 0 end
	local last = m.attempt >= m.max
	local revives = what == 'snooze' or what == 'release' or what == 'extend' or what == 'retry' and not last
	if m.mark == 'D' and revives and m.key ~= '' then
		if M.named('', m.key) then return 0 end
		call('HSET', KEY, m.key, m.id)
	end
	if what == 'ack' then
		M.drop(m)
		return 1
	end
	if what == 'retry' and not last and arg == '' then
		return {'B', m.attempt, m.record}
	end
	if what == 'bury' or what == 'retry' and last then
		m.nonce = ''
		M.die(m, now, reason)
		return {'D', 0}
	end
	M.leave(m)
	m.died = 0
	if what == 'extend' then
		m.mark, m.deadline = 'L', deadline(arg == '' and m.ttr or tonumber(arg))
		call('ZADD', LEASES, m.deadline, m.id)
		M.save(m)
		M.sooner(m.deadline)
		return {'L', m.deadline}
	end
	m.nonce, m.deadline = '', 0
	if what == 'retry' then
		m.due, m.reason = resolve(arg), reason
	else
		m.attempt = math.max(0, m.attempt - 1)
		if what == 'snooze' then m.due = resolve(arg) end
	end
	M.wait(m)
	M.save(m)
	return {'W', m.due}
end

-- Acks of leases, the common case, gather for a few variadic calls.
local acked, keys, a, k, bodies = {}, {}, 0, 0, false
local answer, done = {us, raw, false}, {}
for i = 1, n do
	local at = FIVE * i - 1
	local id, nonce, what = args[at], args[at + 1], args[at + 2]
	local past, settled = pasts[i], 0
	local fast, key = false, ''
	if past and what == 'ack' and not done[id] and byte(past) == 76 then
		local sound, attempt, max, _, expires, ends, _, had, holds = pcall(struct.unpack, '>I4I4ddddBc0I2c0', past, 3)
		-- One that has lapsed past its expiry is gone, unless the lapse made it dead.
		fast, key = sound and had == nonce and (expires >= now or ends > now or attempt >= max), holds
	end
	if fast then
		a = a + 1
		acked[a] = id
		if key ~= '' then
			k = k + 1
			keys[k] = key
		end
		if byte(past, 2) >= IS_LARGE then bodies = true end
		done[id], settled = 'gone', 1
	elseif past and done[id] ~= 'gone' then
		settled = late(id, nonce, what, args[at + 3], args[at + 4])
		-- A retry that will come again with its backoff has the lease already.
		if type(settled) == 'table' and settled[1] == 'B' then done[id] = 'gone' else done[id] = 'seen' end
	end
	answer[i + 3] = settled
end
if a > 0 then
	call('ZREM', LEASES, unpack(acked))
	call('HDEL', STATE, unpack(acked))
	call('HDEL', MSG, unpack(acked))
	if bodies then call('HDEL', BODY, unpack(acked)) end
	if k > 0 then call('HDEL', KEY, unpack(keys)) end
end
answer[3] = woken(before)
return tell(answer, a == n, answer[3])
