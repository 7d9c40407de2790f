-- Functions for single messages. They are created on demand: most calls need none of them.
--
-- A message is a table: id, record, the values of head and PAST, and its flags rare, large
-- and remembered. Before a change of mark, due, died or key, leave removes it from its set;
-- wait or die then adds it to another.

-- The earliest event that this script has added.
local soonest = math.huge

-- The memory of a finished message: id, due, how it ended, since when, and when it is
-- forgotten.
local MEMORY = '>c8dBdd'
local ACKED, CANCELLED, EXPIRED = 1, 2, 3

-- What is left of a listed message: how it ended, attempt, due, when the lease began that was
-- acked, end, creation as in the record, key, failures, and who acked or cancelled it,
-- which takes the rest. From the key on it is as a past.
local ENTRY = '>BI4dddc7I2c0I2c0'

local made
local function messages()
	if made then return made end

	local LAPSED = 'lease lapsed'

	-- A failure, as package codec reads it: when, attempt, worker, reason.
	local FAILURE, KEPT = '>I8I4Bc0I2c0', 5

	local function save(m) call('HSET', STATE, m.id, pack(m)) end

	-- flag sets a message's booleans from its flags.
	local function flag(m)
		m.rare, m.large, m.remembered = m.flags % 2 == IS_RARE, m.flags % 4 >= IS_LARGE, m.flags >= IS_REMEMBERED
	end

	-- find returns a message as last written; nil if there is none.
	local function find(id)
		local record = call('HGET', MSG, id)
		if not record then return nil end
		local m, sound = {id = id, record = record}, nil
		sound, m.flags, m.created, m.key, m.max, m.ttr, m.expire, m.priority, m.remember, m.isolated = parse(record)
		if not sound then return nil end
		flag(m)
		local past = call('HGET', STATE, id)
		if past then
			local _, rest
			sound, m.mark, _, m.attempt, _, m.due, m.expires, m.deadline, m.died, m.secret, _, m.failures, rest = story(past)
			if not sound or not m.mark:find('[WLD]') then return nil end
			m.worker, m.started = sub(past, rest), m.mark == 'D' and m.deadline or m.died
		else
			m.mark, m.attempt, m.deadline, m.died, m.started, m.secret, m.failures, m.worker = 'W', 0, 0, 0, 0, '', '', ''
		end
		if m.mark == 'W' then
			local due
			if m.rare then
				due = call('ZSCORE', RARE, id) or call('ZSCORE', READY, id)
			else
				due = call('ZSCORE', DUE, id)
			end
			if not due then return nil end
			m.due = tonumber(due)
			if not past then
				m.expires = m.expire > 0 and m.due + m.expire or math.huge
			end
		end
		return m
	end

	-- turn is a message's member in TURN, shifted so that years before 1970 sort too.
	local function turn(m)
		return format('%015.0f', m.due + 62135596800000) .. m.id
	end

	-- grave is the member in GRAVE of a message that died at an instant.
	local function grave(key, at, id)
		return redis.sha1hex(key) .. format('%015.0f', at) .. id
	end

	-- sooner records that something happens at an instant.
	local function sooner(at)
		if at < soonest then soonest = at end
	end

	-- wait adds a message to the set in which it waits for its due time.
	local function wait(m)
		m.mark = 'W'
		call('ZADD', m.rare and RARE or DUE, m.due, m.id)
		sooner(m.due)
	end

	-- renew makes a message wait as if it had never been leased, but for its failures. forever:
	-- it does not expire, whatever its policy.
	local function renew(m, due, forever)
		m.due, m.attempt, m.secret = due, 0, ''
		m.expires = m.expire > 0 and not forever and due + m.expire or math.huge
		wait(m)
		if forever or m.failures ~= '' then save(m) else call('HDEL', STATE, m.id) end
	end

	-- leave removes a message from the set of its mark.
	local function leave(m)
		if m.mark == 'L' then
			call('ZREM', LEASES, m.id)
		elseif m.mark == 'D' then
			call('ZREM', DEAD, m.id)
			if m.key ~= '' then call('ZREM', GRAVE, grave(m.key, m.died, m.id)) end
		elseif not m.rare then
			call('ZREM', DUE, m.id)
		elseif call('ZREM', RARE, m.id) == 0 then
			call('ZREM', READY, m.id)
			call('ZREM', TURN, turn(m))
		end
	end

	-- holds reports whether a message holds its key.
	local function holds(m)
		return m.key ~= '' and sub(call('HGET', KEY, m.key) or '', 1, 8) == m.id
	end

	-- hold gives a message its key, which no live message holds; it replaces any memory.
	local function hold(m)
		local new = call('HSET', KEY, m.key, m.remembered and m.id .. '+' or m.id)
		if new == 0 then call('ZREM', FINISHED, m.key) end
	end

	-- holder returns the id of the message that holds a key, else the memory of the key
	-- unless that has expired.
	local function holder(key)
		local value = call('HGET', KEY, key)
		if not value or #value < 10 then return value and sub(value, 1, 8) end
		local _, _, _, _, free = struct.unpack(MEMORY, value)
		return nil, free > now and value or nil
	end

	-- drop deletes a message.
	local function drop(m)
		leave(m)
		if holds(m) then call('HDEL', KEY, m.key) end
		call('HDEL', MSG, m.id)
		call('HDEL', STATE, m.id)
		if m.large then call('HDEL', BODY, m.id) end
	end

	-- cull drops dead messages that exceed the settings, within the room, and returns
	-- whether there are more.
	local function cull()
		local l = settings()
		if not l or l.keep == 0 and l.dead == 0 then return false end
		local most = l.dead > 0 and l.dead or math.huge
		while true do
			local head = call('ZRANGE', DEAD, 0, 0, 'WITHSCORES')
			if not head[1] or tonumber(head[2]) >= keptSince() and call('ZCARD', DEAD) <= most then return false end
			if room <= 0 then return true end
			room = room - 1
			local m = find(head[1])
			if m and m.mark == 'D' then drop(m) else call('ZREM', DEAD, head[1]) end
		end
	end

	-- fail adds a failure of a message's lease, and drops the oldest beyond KEPT. Damaged ones
	-- are replaced.
	local function fail(m, when, reason)
		local old, starts, at = m.failures, {}, 1
		while at <= #old do
			starts[#starts + 1] = at
			at = at + 13 + (byte(old, at + 12) or 0) -- after the worker
			local high, low = byte(old, at, at + 1)
			at = low and at + 2 + 256 * high + low or math.huge
		end
		if at > #old + 1 then starts, old = {}, '' end
		m.failures = sub(old, starts[#starts - KEPT + 2] or 1)
			.. struct.pack(FAILURE, when, m.attempt, #m.worker, m.worker, #reason, reason)
	end

	-- die, after leave, makes a message dead since at. If the settings do not keep it, its mark
	-- becomes X.
	local function die(m, at, reason)
		if m.mark ~= 'D' and holds(m) then call('HDEL', KEY, m.key) end
		fail(m, at, reason)
		m.mark, m.died = 'D', at
		call('ZADD', DEAD, at, m.id)
		if m.key ~= '' then call('ZADD', GRAVE, 0, grave(m.key, at, m.id)) end
		save(m)
		local l = settings()
		if l and (l.dead > 0 or l.keep > 0) then
			cull()
			if not call('ZSCORE', DEAD, m.id) then m.mark = 'X' end
		end
	end

	-- lapse ends a lease at its deadline. The secret still settles until the next change.
	local function lapse(m)
		leave(m)
		if m.attempt >= m.max then
			die(m, m.deadline, LAPSED)
			fell('died')
			return
		end
		fail(m, m.deadline, LAPSED)
		wait(m)
		save(m)
	end

	local named

	-- forget drops up to most expired memories, oldest first, and returns how many.
	local function forget(most)
		local keys = call('ZRANGEBYSCORE', FINISHED, '-inf', now, 'LIMIT', 0, most)
		if #keys > 0 then
			call('HDEL', KEY, unpack(keys))
			call('ZREM', FINISHED, unpack(keys))
		end
		return #keys
	end

	-- ended returns the end of a listed message, and its key; nil if the entry is damaged.
	local function ended(entry)
		local sound, _, _, _, _, at, _, key = pcall(unpacked, ENTRY, entry)
		if sound then return at, key end
	end

	-- listed returns the entry of a message that is listed, and its end.
	local function listed(id)
		local entry = call('HGET', HISTORY, id)
		local at = entry and ended(entry)
		if at and at > unlisted() then return entry, at end
	end

	-- later reports whether an end is later than that of a newest.
	local function later(at, id, newest)
		local high, low, than = unpacked('>I4I4d', newest)
		local over, under = unpacked('>I4I4', id)
		if at ~= than then return at > than end
		return over > high or over == high and under > low
	end

	-- list adds entries to the history. All have ended at the same instant.
	local function list(ids, keys, at, entries)
		local fields, n, ends, text, when = {}, 0, {}, format('%.0f', at), struct.pack('>d', at)
		local last = call('ZRANGE', ENDED, -1, -1, 'WITHSCORES')[2]
		local newest = not last or tonumber(last) < at
		for i = 1, #ids do
			local id = ids[i]
			fields[n + 1], fields[n + 2] = id, entries[i]
			n = n + 2
			if keys[i] ~= '' then
				local field = '=' .. keys[i]
				local was = not newest and call('HGET', HISTORY, field)
				if not was or #was ~= 16 or later(at, id, was) then
					fields[n + 1], fields[n + 2] = field, id .. when
					n = n + 2
				end
			end
			ends[2 * i - 1], ends[2 * i] = text, id
		end
		call('HSET', HISTORY, unpack(fields))
		call('ZADD', ENDED, unpack(ends))
		local own = args[2]:match(' ([1-9].*)')
		if own then call('HSET', META, 'history', own) end
	end

	-- unlist removes messages from the history.
	local function unlist(ids)
		local entries, fields = call('HMGET', HISTORY, unpack(ids)), {}
		for i = 1, #ids do
			local at, key = ended(entries[i] or '')
			local newest = at and key ~= '' and call('HGET', HISTORY, '=' .. key)
			if newest and sub(newest, 1, 8) == ids[i] then fields[#fields + 1] = '=' .. key end
		end
		if #fields > 0 then call('HDEL', HISTORY, unpack(fields)) end
		call('HDEL', HISTORY, unpack(ids))
		call('ZREM', ENDED, unpack(ids))
	end

	-- trim drops up to room messages that are not to be listed, those that ended first, and
	-- returns how many. A client that lists none drops only what others list no more.
	local function trim(room)
		local keep, most = history()
		if keep == 0 and not (limits and limits.history ~= 0) then keep, most = others(most) end
		local n = math.max(call('ZCARD', ENDED) - most, call('ZCOUNT', ENDED, '-inf', format('%.0f', unlisted(keep))))
		n = math.min(n, room)
		if n > 0 then unlist(call('ZRANGE', ENDED, 0, n - 1)) end
		return math.max(0, n)
	end

	-- finish deletes a message that ended in the given way, and lists it. It returns the memory
	-- that is left, none if another message holds the key; and, without writing, the entry.
	local function finish(m, how, at, by)
		local free = at + m.remember
		local memory = m.remembered and free > now and struct.pack(MEMORY, m.id, m.due, how, at, free) or nil
		local entry
		if at > unlisted() then
			local began = 0
			if how == ACKED then began, by = m.started, m.worker end
			entry = struct.pack(ENTRY, how, m.attempt, m.due, began, at, sub(m.record, 2, 8), #m.key, m.key, #m.failures, m.failures) .. (by or '')
		end
		if readonly then return memory, entry end
		drop(m)
		if entry then
			list({m.id}, {m.key}, at, {entry})
			trim(2)
		end
		if not memory or named('', m.key) then return nil end
		call('HSET', KEY, m.key, memory)
		call('ZADD', FINISHED, free, m.key)
		forget(2) -- so that memories do not pile up on queues without leases
		return memory
	end

	-- present is find as of now: it applies a lapse, and drops an expired message. The
	-- second value reports the expiry; then comes what finish returns.
	local function present(id)
		local m = find(id)
		if m and m.mark == 'L' and m.deadline <= now then
			if not readonly then
				lapse(m)
			else
				fail(m, m.deadline, LAPSED)
				m.mark = 'W'
				if m.attempt >= m.max then m.mark, m.died = 'D', m.deadline end
			end
		end
		if m and m.mark == 'X' then return nil end
		if m and m.mark == 'D' and m.died < keptSince() then
			if not readonly then drop(m) end
			return nil
		end
		if m and m.mark == 'W' and m.expires < now then
			local memory, entry = finish(m, EXPIRED, m.expires)
			if not readonly then fell('expired') end
			return nil, true, memory, entry
		end
		return m
	end

	-- waiting is present for a message found among the waiting; with writes an id that does not
	-- wait is removed from them.
	local function waiting(id, due)
		local m, dropped = present(id)
		if m and m.mark == 'W' then return m end
		if not dropped and not readonly then
			call('ZREM', DUE, id)
			call('ZREM', RARE, id)
			call('ZREM', READY, id)
			call('ZREM', TURN, turn({id = id, due = due}))
		end
	end

	-- state is the state of a message that present returned: 1 scheduled, 2 ready, 3 leased,
	-- 4 dead.
	local function state(m)
		if m.mark == 'W' then return m.due > now and 1 or 2 end
		return m.mark == 'L' and 3 or 4
	end

	-- named returns the message of a ref: by id any, by key the live one, else the memory of
	-- the key and, without writing, the entry of one that has just expired.
	named = function(id, key)
		if id ~= '' then return (present(id)) end
		local memory, _
		id, memory = holder(key)
		if not id then return nil, memory end
		local m, entry
		m, _, memory, entry = present(id)
		if m and m.mark == 'D' then return nil end
		return m, memory, entry
	end

	-- rewrite replaces the record of a message.
	local function rewrite(m, record)
		m.record = record
		local _
		_, m.flags, _, _, m.max, m.ttr, m.expire, m.priority, m.remember, m.isolated = parse(record)
		flag(m)
		call('HSET', MSG, m.id, record)
	end

	-- content returns the large content of a message.
	local function content(m)
		return m.large and call('HGET', BODY, m.id) or ''
	end

	-- stands returns a message for the client: id, past, record, content.
	local function stands(m, whole)
		return {m.id, pack(m), m.record, whole and content(m) or ''}
	end

	made = {
		find = find, present = present, named = named, save = save, stands = stands, turn = turn, waiting = waiting, grave = grave, state = state,
		wait = wait, renew = renew, sooner = sooner, leave = leave, drop = drop, cull = cull, fail = fail, die = die, rewrite = rewrite,
		hold = hold, holder = holder, finish = finish, forget = forget, ended = ended, listed = listed, list = list, unlist = unlist, trim = trim,
	}
	return made
end

-- first returns the earliest event, read before anything is added. woken wakes the sleepers
-- if an added event is earlier, and returns its time, else false.
local function first() return math.min(earliest(DUE), earliest(RARE), earliest(READY)) end
local function woken(before)
	if soonest >= before then return false end
	wake(soonest)
	return soonest
end
