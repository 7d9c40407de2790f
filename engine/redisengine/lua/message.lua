-- What scripts do with single messages. Most calls of most scripts get by without, so
-- the functions are only made when they are asked for.
--
-- A message is a table: id, record, what head and PAST give, rare, large and remembered by
-- its flags. Whoever changes its mark, due, died or key first takes it out of the order of
-- its mark (leave) and then puts it into another (wait, die).

-- The soonest thing to happen that this script has added.
local soonest = math.huge

-- What is kept of a message that has left its key behind: id, due, how it ended, since when,
-- and when it is forgotten.
local MEMORY = '>c8dBdd'
local ACKED, CANCELLED, EXPIRED = 1, 2, 3

local made
local function messages()
	if made then return made end

	-- The reason of what a lapse has ended.
	local LAPSED = 'lease lapsed'

	local function save(m) call('HSET', STATE, m.id, pack(m)) end

	-- flag tells a message what its flags say.
	local function flag(m)
		m.rare, m.large, m.remembered = m.flags % 2 == IS_RARE, m.flags % 4 >= IS_LARGE, m.flags >= IS_REMEMBERED
	end

	-- find returns a message as it was last written; nil if there is none.
	local function find(id)
		local record = call('HGET', MSG, id)
		if not record then return nil end
		local m, sound = {id = id, record = record}, nil
		sound, m.flags, m.created, m.key, m.max, m.ttr, m.expire, m.priority, m.remember, m.isolated = parse(record)
		if not sound then return nil end
		flag(m)
		local past = call('HGET', STATE, id)
		if past then
			local _
			sound, m.mark, _, m.attempt, _, m.due, m.expires, m.deadline, m.died, m.secret, _, m.reason = story(past)
			if not sound or not m.mark:find('[WLD]') then return nil end
		else
			m.mark, m.attempt, m.deadline, m.died, m.secret, m.reason = 'W', 0, 0, 0, '', ''
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

	-- turn is a message's member in TURN. The years before 1970 count too.
	local function turn(m)
		return format('%015.0f', m.due + 62135596800000) .. m.id
	end

	-- grave is a dead message's member in GRAVE.
	local function grave(m)
		return redis.sha1hex(m.key) .. format('%015.0f', m.died) .. m.id
	end

	-- sooner notes that something happens at an instant.
	local function sooner(at)
		if at < soonest then soonest = at end
	end

	-- wait puts a message where it waits for its due time.
	local function wait(m)
		m.mark = 'W'
		call('ZADD', m.rare and RARE or DUE, m.due, m.id)
		sooner(m.due)
	end

	-- leave takes a message out of the order of its mark.
	local function leave(m)
		if m.mark == 'L' then
			call('ZREM', LEASES, m.id)
		elseif m.mark == 'D' then
			call('ZREM', DEAD, m.id)
			if m.key ~= '' then call('ZREM', GRAVE, grave(m)) end
		elseif not m.rare then
			call('ZREM', DUE, m.id)
		elseif call('ZREM', RARE, m.id) == 0 then
			call('ZREM', READY, m.id)
			call('ZREM', TURN, turn(m))
		end
	end

	-- holds says whether a message holds its key.
	local function holds(m)
		return m.key ~= '' and sub(call('HGET', KEY, m.key) or '', 1, 8) == m.id
	end

	-- hold gives a message its key, which no live one holds; what stood there is a memory.
	local function hold(m)
		local new = call('HSET', KEY, m.key, m.remembered and m.id .. '+' or m.id)
		if new == 0 then call('ZREM', FINISHED, m.key) end
	end

	-- holder returns the id of who holds a key, else what is remembered of it; a memory whose
	-- time is over is none.
	local function holder(key)
		local value = call('HGET', KEY, key)
		if not value or #value < 10 then return value and sub(value, 1, 8) end
		local _, _, _, _, free = struct.unpack(MEMORY, value)
		return nil, free > now and value or nil
	end

	-- drop forgets a message.
	local function drop(m)
		leave(m)
		if holds(m) then call('HDEL', KEY, m.key) end
		call('HDEL', MSG, m.id)
		call('HDEL', STATE, m.id)
		if m.large then call('HDEL', BODY, m.id) end
	end

	-- cull drops of the dead what the settings do not let stay, as far as there is room, and
	-- returns whether there is more.
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

	-- die makes a message dead since at. Where the settings do not let it stay its mark is X.
	local function die(m, at, reason)
		leave(m)
		if holds(m) then call('HDEL', KEY, m.key) end
		m.mark, m.died, m.reason = 'D', at, reason
		call('ZADD', DEAD, at, m.id)
		if m.key ~= '' then call('ZADD', GRAVE, 0, grave(m)) end
		save(m)
		local l = settings()
		if l and (l.dead > 0 or l.keep > 0) then
			cull()
			if not call('ZSCORE', DEAD, m.id) then m.mark = 'X' end
		end
	end

	-- lapse ends a lease at its deadline. Its secret goes on settling until something
	-- else is decided.
	local function lapse(m)
		if m.attempt >= m.max then
			die(m, m.deadline, LAPSED)
			fell('died')
			return
		end
		leave(m)
		m.reason = LAPSED
		wait(m)
		save(m)
	end

	local named

	-- forget drops so many memories at most whose time is over, those first that were to go
	-- first, and returns how many.
	local function forget(most)
		local keys = call('ZRANGEBYSCORE', FINISHED, '-inf', now, 'LIMIT', 0, most)
		if #keys > 0 then
			call('HDEL', KEY, unpack(keys))
			call('ZREM', FINISHED, unpack(keys))
		end
		return #keys
	end

	-- finish drops a message that went in such a way, and returns what is remembered of it, if
	-- anything is: not where another has come to hold its key.
	local function finish(m, how, at)
		local free = at + m.remember
		local memory = m.remembered and free > now and struct.pack(MEMORY, m.id, m.due, how, at, free) or nil
		if still then return memory end
		drop(m)
		if not memory or named('', m.key) then return nil end
		call('HSET', KEY, m.key, memory)
		call('ZADD', FINISHED, free, m.key)
		forget(2) -- so that they do not gather where nobody leases
		return memory
	end

	-- present is find for what stands now: a lease past its deadline has lapsed, and
	-- what has expired is gone, which the second value says; the third is what is remembered
	-- of it.
	local function present(id)
		local m = find(id)
		if m and m.mark == 'L' and m.deadline <= now then
			if not still then
				lapse(m)
			elseif m.attempt >= m.max then
				m.mark, m.died, m.reason = 'D', m.deadline, LAPSED
			else
				m.mark, m.reason = 'W', LAPSED
			end
		end
		if m and m.mark == 'X' then return nil end
		if m and m.mark == 'D' and m.died < keptSince() then
			if not still then drop(m) end
			return nil
		end
		if m and m.mark == 'W' and m.expires < now then
			local memory = finish(m, EXPIRED, m.expires)
			if not still then fell('expired') end
			return nil, true, memory
		end
		return m
	end

	-- waiting is present for one that seems to wait: what does not is taken off those
	-- that do, even if nothing else is known of it.
	local function waiting(id, due)
		local m, dropped = present(id)
		if m and m.mark == 'W' then return m end
		if not dropped then
			call('ZREM', DUE, id)
			call('ZREM', RARE, id)
			call('ZREM', READY, id)
			call('ZREM', TURN, turn({id = id, due = due}))
		end
	end

	-- state is that of a message which present has found: 1 scheduled, 2 ready, 3 leased,
	-- 4 dead.
	local function state(m)
		if m.mark == 'W' then return m.due > now and 1 or 2 end
		return m.mark == 'L' and 3 or 4
	end

	-- named finds what a ref means: by id any message, by key the live one, else as the second
	-- value what is remembered of the key.
	named = function(id, key)
		if id ~= '' then return (present(id)) end
		local memory, _
		id, memory = holder(key)
		if not id then return nil, memory end
		local m
		m, _, memory = present(id)
		if m and m.mark == 'D' then return nil end
		return m, memory
	end

	-- rewrite gives a message another record and keeps when it was created.
	local function rewrite(m, record)
		m.record = record:sub(1, 1) .. m.record:sub(2, 8) .. record:sub(9)
		m.flags = byte(record)
		flag(m)
		call('HSET', MSG, m.id, m.record)
		hold(m)
	end

	-- content is what a large message has beside its record.
	local function content(m)
		return m.large and call('HGET', BODY, m.id) or ''
	end

	-- stands is a message for the client: id, what has happened to it, record, content.
	local function stands(m, whole)
		return {m.id, pack(m), m.record, whole and content(m) or ''}
	end

	made = {
		find = find, present = present, named = named, save = save, stands = stands, turn = turn, waiting = waiting, grave = grave, state = state,
		wait = wait, sooner = sooner, leave = leave, drop = drop, cull = cull, die = die, rewrite = rewrite, hold = hold, holder = holder, finish = finish, forget = forget,
	}
	return made
end

-- first returns the first thing to happen, to be asked before anything is added; woken
-- wakes those that sleep if something added happens sooner, and returns when, or false.
local function first() return math.min(earliest(DUE), earliest(RARE), earliest(READY)) end
local function woken(before)
	if soonest >= before then return false end
	wake(soonest)
	return soonest
end
