-- Pushes messages with distinct keys. ARGV: how many, their dues, the action of each (see
-- below; '' if all are usual), the revision of the settings used ('' for none), then for each
-- message id, key, record, the content if it is large, and id and nonce of the lease that an
-- exchange ends. Answers the clock, the soonest due if others were woken, and for each message
-- the due if it was created, else {action, id, due, mark}, {action, memory} if the key is
-- remembered, taken if its id is in use, or lost if its lease is. If the revision differs, it
-- does nothing and answers "settings" and them.
local count, how = tonumber(args[4]), args[6]

-- A due is a byte and a double: 0 and microseconds from now, 1 and milliseconds, or 2 and
-- milliseconds without their fraction. Numbers as text are slower.
local dues = {struct.unpack('>' .. ('Bd'):rep(count), args[5])}
for i = 1, count do
	local kind, at = dues[2 * i - 1], dues[2 * i]
	if kind == 0 then
		if at > 0 then
			at = us + at
			local rest = at % 1000
			at = (rest > 0 and at + 1000 - rest or at) / 1000
		else
			at = now
		end
	elseif kind == 2 and at >= now then
		at = at + 1
	end
	dues[i] = at
end
if replied ~= nil then return {us, raw, replied, unpack(dues, 1, count)} end
local stored = call('HGET', META, 'settings')
know(stored)
if (limits and sub(stored, 1, 8) or '') ~= args[7] then return reply({us, raw, 'settings', limits and stored or ''}) end

-- An action is a byte: the flags of the message, and eight times its conflict policy. An
-- exchange is the replace by the holder of the lease.
local policies = {[0] = 'reject', 'keep', 'replace', 'keep_due', 'rearm', 'exchange'}
local EXCHANGE = 8 * 5

-- An ended lease may free a place where leases are limited.
local freed = false

-- meet applies the policy of a push to the message that holds its key.
local function meet(other, policy, at, record, body)
	local M, done = messages(), nil
	if policy == 'reject' then
		done = 'exists'
	elseif policy == 'keep' then
		done = 'kept'
	elseif other.mark == 'L' and policy ~= 'exchange' then
		done = 'leased'
	else
		if other.mark == 'L' and limits and limits.flight > 0 then freed = true end
		M.leave(other)
		if policy ~= 'rearm' then
			local was = other.large
			M.rewrite(other, sub(record, 1, 1) .. sub(other.record, 2, 8) .. sub(record, 9)) -- created when it was
			M.hold(other)
			if other.large then
				call('HSET', BODY, other.id, body)
			elseif was then
				call('HDEL', BODY, other.id)
			end
		end
		M.renew(other, policy == 'keep_due' and other.due or at)
		done = 'replaced'
	end
	return {done, other.id, other.due, other.mark}
end

-- The index of each message's arguments, and its key.
local from, keys, k = {}, {}, 0
do
	local i = 8
	for n = 1, count do
		from[n] = i
		local key = args[i + 1]
		if key ~= '' then
			k = k + 1
			keys[k] = key
		end
		i = i + 3
		if how ~= '' and byte(how, n) % 4 >= IS_LARGE then i = i + 1 end
		if how ~= '' and byte(how, n) >= EXCHANGE then i = i + 1 end
	end
end

-- holds reports whether an id and a nonce are those of the last lease of a message.
local function holds(lease, m)
	return m and sub(lease, 1, 8) == m.id and sealed(m.secret, m.id, sub(lease, 9))
end

local holders = k > 0 and call('HMGET', KEY, unpack(keys))

-- An id can repeat if a failover has lost the reservation of its block.
local ids = {}
for n = 1, count do ids[n] = args[from[n]] end
local taken = call('HMGET', MSG, unpack(ids))

-- space is how many more live messages are allowed. If it is none, lapses and expiries not
-- yet applied may free some.
local bounded, space = limits and limits.live > 0, nil
local function spare()
	return limits.live - call('ZCARD', DUE) - call('ZCARD', RARE) - call('ZCARD', READY) - call('ZCARD', LEASES)
end

-- admits reports whether one more message is allowed, beyond those to be made.
local function admits(made)
	if not space then
		space = spare()
		if space <= made then
			for _, zset in ipairs({LEASES, RARE, READY}) do
				for _, id in ipairs(call('ZRANGEBYSCORE', zset, '-inf', now, 'LIMIT', 0, CHUNK / 5)) do messages().present(id) end
			end
			space = spare()
		end
	end
	return space > made
end

-- New messages are collected, so that a few variadic calls write them all.
local before, least = earliest(DUE), math.huge
for n = 1, count do
	if dues[n] < least then least = dues[n] end
end
if least < before then before = first() end
local answer, due, rare, msgs, bodies, held = {us, raw, false}, {}, {}, {}, {}, {}
local d, r, m, b, h = 0, 0, 0, 0, 0
k = 0
for n = 1, count do
	local i, at, flags, policy, other, memory = from[n], dues[n], 0, 0, nil, nil
	local id, key, record = args[i], args[i + 1], args[i + 2]
	if how ~= '' then
		flags = byte(how, n) % 8
		policy = (byte(how, n) - flags) / 8
	end
	if key ~= '' then
		k = k + 1
		if holders[k] then other, memory = messages().named('', key) end
	end
	if policies[policy] == 'exchange' and not holds(args[flags % 4 >= IS_LARGE and i + 4 or i + 3], other) then
		answer[n + 3] = {'lost', id, at, ''}
	elseif not other and taken[n] then
		answer[n + 3] = {'taken', id, at, ''}
	elseif other then
		answer[n + 3] = meet(other, policies[policy], at, record, args[i + 3])
	elseif memory and (policies[policy] == 'reject' or policies[policy] == 'keep') then
		answer[n + 3] = {policies[policy] == 'keep' and 'kept' or 'exists', memory}
	elseif bounded and not admits(m / 2) then
		answer[n + 3] = {'full', id, at, ''}
	else
		answer[n + 3] = at
		if at < soonest then soonest = at end
		if flags % 2 == IS_RARE then
			rare[r + 1], rare[r + 2] = format('%d', at), id
			r = r + 2
		else
			due[d + 1], due[d + 2] = format('%d', at), id
			d = d + 2
		end
		msgs[m + 1], msgs[m + 2] = id, record
		m = m + 2
		if flags % 4 >= IS_LARGE then
			bodies[b + 1], bodies[b + 2] = id, args[i + 3]
			b = b + 2
		end
		if key ~= '' then
			held[h + 1], held[h + 2] = key, flags >= IS_REMEMBERED and id .. '+' or id
			h = h + 2
			if holders[k] then call('ZREM', FINISHED, key) end
		end
	end
end
if d > 0 then call('ZADD', DUE, unpack(due)) end
if r > 0 then call('ZADD', RARE, unpack(rare)) end
if m > 0 then call('HSET', MSG, unpack(msgs)) end
if b > 0 then call('HSET', BODY, unpack(bodies)) end
if h > 0 then call('HSET', KEY, unpack(held)) end
if freed then
	wake(now)
	answer[3] = now
else
	answer[3] = woken(before)
end
return reply(answer, m == 2 * count, answer[3])
