-- Settles leases. ARGV: the action of each, a byte (see below; '' if all are acks; 8 more with
-- a new priority), then id and nonce of each and, unless it is an ack, a time or duration, a
-- reason and the priority if it is new. Answers the clock, the soonest due if others were woken, and nothing more if all messages are gone.
-- Else for each: 0 if the lease is lost, 1 if the message is gone, {mark, due or deadline},
-- or, for a retry that needs a backoff from the client, {'B', attempt, record}.
if replied ~= nil then return {us, raw, replied} end
local PRIORITIZES = 8
local actions = {[0] = 'ack', 'retry', 'snooze', 'release', 'bury', 'extend'}
local how, ids, from, n = args[4], {}, {}, 0
do
	local i = 5
	while i < #args do
		n = n + 1
		ids[n], from[n] = args[i], i
		i = i + 2
		if how ~= '' and byte(how, n) > 0 then i = i + (byte(how, n) < PRIORITIZES and 2 or 3) end
	end
end
local pasts = call('HMGET', STATE, unpack(ids))
local before, was = how ~= '' and first() or math.huge, full()

-- prioritize changes the priority of a message, which is in no set meanwhile.
local function prioritize(m, priority)
	local _, _, _, has, at = unpacked(HEAD, m.record)
	local flags, rest = m.flags - m.flags % 2, sub(m.record, has % 2 == 1 and at + 4 or at)
	local own = ''
	has = has - has % 2
	if priority ~= USUAL then has, own = has + 1, struct.pack('>I4', priority) end
	if priority ~= USUAL or m.expire > 0 then flags = flags + IS_RARE end
	messages().rewrite(m, string.char(flags) .. sub(m.record, 2, at - 2) .. string.char(has) .. own .. rest)
end

-- late settles in any way but the common one. priority is nil unless it is new.
local function late(id, nonce, what, arg, reason, priority)
	local M = messages()
	local m = M.present(id)
	if not m or not sealed(m.secret, id, nonce) then return 0 end
	local last = m.attempt >= m.max
	local revives = what == 'snooze' or what == 'release' or what == 'extend' or what == 'retry' and not last
	if m.mark == 'D' and revives and m.key ~= '' then
		if M.named('', m.key) then return 0 end
		M.hold(m)
	end
	if what == 'ack' then
		M.finish(m, ACKED, now)
		return 1
	end
	if what == 'retry' and not last and arg == '' then
		return {'B', m.attempt, m.record}
	end
	M.leave(m)
	if priority and priority ~= m.priority then prioritize(m, priority) end
	if what == 'bury' or what == 'retry' and last then
		m.secret = ''
		M.die(m, now, reason)
		return {'D', 0}
	end
	m.died = 0
	if what == 'extend' then
		m.mark = 'L'
		m.deadline = deadline(arg == '' and m.ttr or tonumber(arg)) + spread(m.id, m.attempt, m.max, m.isolated)
		call('ZADD', LEASES, m.deadline, m.id)
		M.save(m)
		M.sooner(m.deadline)
		return {'L', m.deadline}
	end
	m.secret, m.deadline = '', 0
	if what == 'retry' then
		m.due = resolve(arg)
		M.fail(m, now, reason)
	else
		m.attempt = math.max(0, m.attempt - 1)
		if what == 'snooze' then m.due = resolve(arg) end
	end
	M.wait(m)
	M.save(m)
	return {'W', m.due}
end

local listing = history() > 0

-- held returns the key of a message ('' for none) if its past shows a lease of this nonce and
-- an ack needs nothing else. Messages leased together usually share all of their past before
-- the key. fits is that part of the last message, and shown the secret that was checked with
-- it.
local fits, shown
local function held(past, id, nonce)
	local flags, high, low = byte(past, 2), byte(past, 76, 77)
	if not flags then return nil end
	local head = sub(past, 1, 75)
	if head ~= fits or nonce ~= shown then
		local secret = sub(head, 44)
		if byte(head) ~= 76 or byte(head, 43) ~= 32 or not low or not sealed(secret, id, nonce) then return nil end
		-- A message that died by its lapse may exceed the settings; a history shows the lapse.
		local l = settings()
		if (listing or l and (l.keep > 0 or l.dead > 0)) and unpacked('>d', past, 27) <= now then return nil end
		if nonce == secret then fits, shown = head, nonce end
	end
	if not low then return nil end
	local last = 77 + 256 * high + low
	if #past < last + 2 then return nil end
	if flags % 2 == IS_RARE then
		-- A message that lapsed after its expiry is gone, unless the lapse made it dead.
		local attempt, max, _, expires, ends = unpacked('>I4I4ddd', past, 3)
		if not (expires >= now or ends > now or attempt >= max) then return nil end
	end
	return sub(past, 78, last)
end

-- Acks, the common case, are collected for a few variadic calls.
local acked, keys, a, k, bodies = {}, {}, 0, 0, false
local kept, keptKeys, dues, r = {}, {}, {}, 0 -- those whose keys are remembered
local theirs, allKeys = {}, {} -- for the history
local answer, done = {us, raw, false}, {}
for i = 1, n do
	local id, past, at = ids[i], pasts[i], from[i]
	local action = how == '' and 0 or byte(how, i)
	local key, settled = nil, 0
	if past and action == 0 and not done[id] then key = held(past, id, args[at + 1]) end
	if key then
		a = a + 1
		acked[a] = id
		if listing then theirs[a], allKeys[a] = past, key end
		local flags = byte(past, 2)
		if flags >= IS_REMEMBERED then
			r = r + 1
			kept[r], keptKeys[r], dues[r] = id, key, unpacked('>d', past, 11)
		elseif key ~= '' then
			k = k + 1
			keys[k] = key
		end
		if flags % 4 >= IS_LARGE then bodies = true end
		done[id], settled = 'gone', 1
	elseif past and done[id] ~= 'gone' then
		local arg, reason, priority = '', '', nil
		if action > 0 then arg, reason = args[at + 2], args[at + 3] end
		if action >= PRIORITIZES then action, priority = action - PRIORITIZES, tonumber(args[at + 4]) end
		settled = late(id, args[at + 1], actions[action], arg, reason, priority)
		-- A retry that comes again with its backoff has been checked already.
		if type(settled) == 'table' and settled[1] == 'B' then done[id] = 'gone' else done[id] = 'seen' end
	end
	answer[i + 3] = settled
end
-- A damaged record has no duration, so nothing is remembered.
if r > 0 then
	local records, memories, ends, n = call('HMGET', MSG, unpack(kept)), {}, {}, 0
	for i = 1, r do
		local sound, _, _, _, _, _, _, _, span = parse(records[i] or '')
		if sound then
			local free = now + span
			memories[n + 1], memories[n + 2] = keptKeys[i], struct.pack(MEMORY, kept[i], dues[i], ACKED, now, free)
			ends[n + 1], ends[n + 2] = format('%.0f', free), keptKeys[i]
			n = n + 2
		else
			k = k + 1
			keys[k] = keptKeys[i]
		end
	end
	if n > 0 then
		call('HSET', KEY, unpack(memories))
		call('ZADD', FINISHED, unpack(ends))
		messages().forget(n)
	end
end
if listing and a > 0 then
	local records, entries, ends = call('HMGET', MSG, unpack(acked)), {}, struct.pack('>d', now)
	local head, begins
	for i = 1, a do
		local past, created = theirs[i], sub(records[i] or '', 2, 8)
		if #created < 7 then created = ('\0'):rep(7) end -- the record is damaged
		if sub(past, 1, 42) ~= head then
			head = sub(past, 1, 42)
			begins = string.char(ACKED) .. sub(past, 3, 6) .. sub(past, 11, 18) .. sub(past, 35, 42) .. ends
		end
		entries[i] = begins .. created .. sub(past, 76)
	end
	messages().list(acked, allKeys, now, entries)
	messages().trim(a + 2)
end
if a > 0 then
	call('ZREM', LEASES, unpack(acked))
	call('HDEL', STATE, unpack(acked))
	call('HDEL', MSG, unpack(acked))
	if bodies then call('HDEL', BODY, unpack(acked)) end
	if k > 0 then call('HDEL', KEY, unpack(keys)) end
end
if a == n then answer = {us, raw} end
-- A lease became free: wake those that sleep because of the limit.
if was and not full() then
	wake(now)
	answer[3] = now
else
	answer[3] = woken(before)
end
return reply(answer, a == n, answer[3])
