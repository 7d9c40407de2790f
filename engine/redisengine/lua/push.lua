-- Pushes messages, no two of one key: ARGV has for each message id, key, due, policy for a live key, record,
-- and if it is large its content. Answers the clock, the soonest due if others were
-- woken, and for each message its due when it was created, else {what was done, id,
-- due, mark}.
tick()

-- Who holds the keys, in their order.
local holders
do
	local keys, n, i, last = {}, 0, 4, #args
	while i <= last do
		if args[i + 1] ~= '' then
			n = n + 1
			keys[n] = args[i + 1]
		end
		i = i + (byte(args[i + 4], 9) >= IS_LARGE and 6 or 5)
	end
	holders = n > 0 and call('HMGET', KEY, unpack(keys))
end

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

-- New messages gather, so that a few variadic calls write them all.
local before = earliest(DUE)
local due, rare, msgs, bodies, held = {}, {}, {}, {}, {}
local d, r, m, b, h, k = 0, 0, 0, 0, 0, 0
local answer, n, i, last = {us, raw, false}, 3, 4, #args
while i <= last do
	local id, key, at, record = args[i], args[i + 1], resolve(args[i + 2]), args[i + 4]
	local policy, flags, body, other = args[i + 3], byte(record, 9), nil, nil
	i = i + 5
	if flags >= IS_LARGE then
		body = args[i]
		i = i + 1
	end
	if key ~= '' then
		k = k + 1
		if holders[k] then other = messages().named('', key) end
	end
	n = n + 1
	if other then
		answer[n] = meet(other, policy, at, record, body)
	else
		answer[n] = at
		if at < soonest then soonest = at end
		at = format('%d', at)
		if flags % 2 == IS_RARE then
			rare[r + 1], rare[r + 2] = at, id
			r = r + 2
		else
			due[d + 1], due[d + 2] = at, id
			d = d + 2
		end
		msgs[m + 1], msgs[m + 2] = id, record
		m = m + 2
		if body then
			bodies[b + 1], bodies[b + 2] = id, body
			b = b + 2
		end
		if key ~= '' then
			held[h + 1], held[h + 2] = key, id
			h = h + 2
		end
	end
end
if d > 0 then call('ZADD', DUE, unpack(due)) end
if r > 0 then call('ZADD', RARE, unpack(rare)) end
if m > 0 then call('HSET', MSG, unpack(msgs)) end
if b > 0 then call('HSET', BODY, unpack(bodies)) end
if h > 0 then call('HSET', KEY, unpack(held)) end
answer[3] = woken(before)
return answer
