-- Pushes messages: ARGV is the clock, the channel and the hint for those who sleep,
-- then six for each message: id, key, due, policy for a live key, record, large
-- content. Answers the clock, the soonest due if others were woken, and for each
-- message its due when it was created, else {what was done, id, due, mark}.
local SIX = 6
tick()
local stamp = struct.pack('>d', us)

-- Who holds the keys, by key.
local holder = {}
do
	local keys, n = {}, 0
	for i = 5, #ARGV, SIX do
		if ARGV[i] ~= '' then
			n = n + 1
			keys[n] = ARGV[i]
		end
	end
	if n > 0 then
		local ids = call('HMGET', KEY, unpack(keys))
		for i = 1, n do holder[keys[i]] = ids[i] end
	end
end

-- New messages gather, so that a few variadic calls write them all.
local due, rare, msgs, bodies, held
local d, r, m, b, h = 0, 0, 0, 0, 0
local function begin()
	due, rare, msgs, bodies, held = {}, {}, {}, {}, {}
	d, r, m, b, h = 0, 0, 0, 0, 0
end
local function write()
	if d > 0 then call('ZADD', DUE, unpack(due)) end
	if r > 0 then call('ZADD', RARE, unpack(rare)) end
	if m > 0 then call('HSET', MSG, unpack(msgs)) end
	if b > 0 then call('HSET', BODY, unpack(bodies)) end
	if h > 0 then call('HSET', KEY, unpack(held)) end
	begin()
end
begin()

-- meet applies the policy of a push whose key another message holds.
local function meet(other, policy, at, record, body)
	local M, done = messages(), nil
	if policy == 'reject' then
		done = 'exists'
	elseif policy == 'keep' then
		done = 'kept'
	elseif other.mark == 'L' then
		done = 'leased'
	else
		M.leave(other)
		if policy ~= 'rearm' then
			local was = other.large
			M.rewrite(other, record)
			if other.large then
				call('HSET', BODY, other.id, body)
			elseif was then
				call('HDEL', BODY, other.id)
			end
		end
		if policy ~= 'keep_due' then other.due = at end
		call('HDEL', STATE, other.id)
		M.wait(other)
		done = 'replaced'
	end
	return {done, other.id, other.due, other.mark}
end

local before = earliest(DUE)
local answer, n = {us, raw, false}, 3
for i = 4, #ARGV, SIX do
	local id, key, at, record, body = ARGV[i], ARGV[i + 1], resolve(ARGV[i + 2]), ARGV[i + 4], ARGV[i + 5]
	local other
	if key ~= '' and holder[key] then
		write()
		other = messages().named('', key)
	end
	n = n + 1
	if other then
		answer[n] = meet(other, ARGV[i + 3], at, record, body)
	else
		if record:byte() % 2 == IS_RARE then
			rare[r + 1], rare[r + 2] = at, id
			r = r + 2
		else
			due[d + 1], due[d + 2] = at, id
			d = d + 2
		end
		msgs[m + 1], msgs[m + 2] = id, stamp .. record
		m = m + 2
		if body ~= '' then
			bodies[b + 1], bodies[b + 2] = id, body
			b = b + 2
		end
		if key ~= '' then
			held[h + 1], held[h + 2] = key, id
			h = h + 2
			holder[key] = id
		end
		if at < soonest then soonest = at end
		answer[n] = at
	end
end
write()
answer[3] = woken(before, ARGV[2], ARGV[3])
return answer
