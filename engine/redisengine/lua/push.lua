-- Pushes messages: ARGV is the clock, the channel and the hint for those who sleep,
-- then six for each message: id, key, due, policy for a live key, record, large
-- content. Answers the clock, the soonest due if others were woken, and for each
-- message its due when it was created, else {what was done, id, due, mark}.
local SIX = 6
watch()
local seq = call('HINCRBY', META, 'seq', 1)
local stamp = struct.pack('>dd', now, seq)

local keys = {}
for i = 4, #ARGV, SIX do
	if ARGV[i + 1] ~= '' then keys[#keys + 1] = ARGV[i + 1] end
end
local holder = {}
if #keys > 0 then
	local ids = call('HMGET', KEY, unpack(keys))
	for i, key in ipairs(keys) do holder[key] = ids[i] end
end

-- New messages gather, so that a few variadic calls write them all.
local due, rare, msgs, bodies, held = {}, {}, {}, {}, {}
local function write()
	if #due > 0 then call('ZADD', DUE, unpack(due)) end
	if #rare > 0 then call('ZADD', RARE, unpack(rare)) end
	if #msgs > 0 then call('HSET', MSG, unpack(msgs)) end
	if #bodies > 0 then call('HSET', BODY, unpack(bodies)) end
	if #held > 0 then call('HSET', KEY, unpack(held)) end
	due, rare, msgs, bodies, held = {}, {}, {}, {}, {}
end

local function create(id, key, at, record, body)
	local to = record:byte(1) % 2 == IS_RARE and rare or due
	to[#to + 1], to[#to + 2] = at, id
	msgs[#msgs + 1], msgs[#msgs + 2] = id, stamp .. record
	if body ~= '' then bodies[#bodies + 1], bodies[#bodies + 2] = id, body end
	if key ~= '' then
		held[#held + 1], held[#held + 2] = key, id
		holder[key] = id
	end
	if at < soonest then soonest = at end
	return at
end

-- meet applies the policy of a push whose key is held; nil: it is not any more.
local function meet(m, policy, at, record, body)
	local done
	if policy == 'reject' then
		done = 'exists'
	elseif policy == 'keep' then
		done = 'kept'
	elseif m.mark == 'L' then
		done = 'leased'
	else
		leave(m)
		if policy ~= 'rearm' then
			m.record = struct.pack('>dd', m.created, seq) .. record
			local was = m.large
			m.flags = record:byte(1)
			m.rare, m.large = m.flags % 2 == IS_RARE, m.flags >= IS_LARGE
			call('HSET', MSG, m.id, m.record)
			if m.large then
				call('HSET', BODY, m.id, body)
			elseif was then
				call('HDEL', BODY, m.id)
			end
		end
		if policy ~= 'keep_due' then m.due = at end
		call('HDEL', STATE, m.id)
		wait(m)
		done = 'replaced'
	end
	return {done, m.id, m.due, m.mark}
end

local answer = {us, raw, false}
for i = 4, #ARGV, SIX do
	local id, key, at = ARGV[i], ARGV[i + 1], resolve(ARGV[i + 2])
	local m
	if key ~= '' and holder[key] then
		write()
		m = named('', key)
	end
	if m then
		answer[#answer + 1] = meet(m, ARGV[i + 3], at, ARGV[i + 4], ARGV[i + 5])
	else
		answer[#answer + 1] = create(id, key, at, ARGV[i + 4], ARGV[i + 5])
	end
end
write()
answer[3] = woken(ARGV[2], ARGV[3])
return answer
