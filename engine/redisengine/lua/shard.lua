-- One shard of a queue, and what every script does with it. Each script is this
-- file followed by its own. All keys of a shard are in one hash slot.
--
--   DUE     sorted set  id by due time: waiting messages of the usual priority that never expire
--   RARE    sorted set  id by due time: waiting messages with another priority or an expiry
--   READY   sorted set  id by due time: those of RARE that have come due
--   TURN    sorted set  due and id by priority: the same, in the order in which they go out
--   LEASES  sorted set  id by deadline
--   STATE   hash        id to what has happened to a message; none before its first lease
--   MSG     hash        id to the message
--   BODY    hash        id to a large content
--   KEY     hash        key to the id of the live message that holds it
--   DEAD    sorted set  id by death
--   GRAVE   sorted set  hash of the key, death and id of dead messages with a key, in that order
--   META    hash        seq of pushes, wakes, until when it is paused, how many have expired and died
--
-- An id has 19 digits, so that Redis, which orders equal scores by member, orders
-- by (due, id). Instants are Unix milliseconds. ARGV[1] is the clock: see below.
local DUE, RARE, READY, TURN, LEASES, STATE, MSG, BODY, KEY, DEAD, GRAVE, META = unpack(KEYS)
local call = redis.call

-- Flags of a message.
local IS_RARE, IS_LARGE = 1, 2
-- The priority of messages in DUE.
local USUAL = 1024
-- How many messages one script looks after on the way, so that none holds up the
-- server for long.
local CHUNK = 500

-- The clock is the server's. A client that knows the clocks of several nodes says
-- what they agree on, and a node that is off by more than half a second follows
-- them. "@" stands before a clock that a test has stopped.
local us, raw
do
	local time = call('TIME')
	raw = time[1] * 1000000 + time[2]
	us = raw
	local clock = ARGV[1]
	if clock:sub(1, 1) == '@' then
		us = tonumber(clock:sub(2))
	elseif clock ~= '' and math.abs(raw - tonumber(clock)) > 500000 then
		us = tonumber(clock)
	end
end
local now = math.floor(us / 1000)

-- resolve turns a due time as sent into an instant: "+" and microseconds from now,
-- or milliseconds, with "~" behind if a fraction was cut off.
local function resolve(due)
	if due:sub(1, 1) == '+' then
		local span = tonumber(due:sub(2))
		return span > 0 and math.ceil((us + span) / 1000) or now
	end
	if due:sub(-1) == '~' then
		local at = tonumber(due:sub(1, -2))
		return at >= now and at + 1 or at
	end
	return tonumber(due)
end

-- deadline is that of a lease which begins now, never already over.
local function deadline(ttr)
	return math.max(now + 1, math.ceil((us + ttr) / 1000))
end

-- A message, as in record.go: created, seq, flags, priority, max attempts, ttr in
-- microseconds, expire after in milliseconds, size of the content, key.
local HEAD = '>ddBI4I4ddI4I2c0'
-- What has happened to it: mark (W waits, L is leased, D is dead), flags, attempt,
-- max attempts, due, expires, deadline, died, nonce, key, reason.
local PAST = '>c1BI4I4ddddBc0I2c0I2c0'

local function pack(m)
	return struct.pack(PAST, m.mark, m.flags, m.attempt, m.max, m.due, m.expires, m.deadline, m.died,
		#m.nonce, m.nonce, #m.key, m.key, #m.reason, m.reason)
end

local function save(m) call('HSET', STATE, m.id, pack(m)) end

-- find returns a message as it was last written; nil if there is none.
local function find(id)
	local record = call('HGET', MSG, id)
	if not record then return nil end
	local m = {id = id, record = record}
	m.created, m.seq, m.flags, m.priority, m.max, m.ttr, m.expire, m.size, m.key = struct.unpack(HEAD, record)
	m.rare = m.flags % 2 == IS_RARE
	m.large = m.flags >= IS_LARGE
	local past = call('HGET', STATE, id)
	if past then
		local _
		m.mark, _, m.attempt, _, m.due, m.expires, m.deadline, m.died, m.nonce, _, m.reason = struct.unpack(PAST, past)
	else
		m.mark, m.attempt, m.deadline, m.died, m.nonce, m.reason = 'W', 0, 0, 0, '', ''
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
	return string.format('%015.0f', m.due + 62135596800000) .. m.id
end

-- grave is a dead message's member in GRAVE.
local function grave(m)
	return redis.sha1hex(m.key) .. string.format('%015.0f', m.died) .. m.id
end

-- What was the first thing to happen, before this script, and what it added.
local first, soonest
local function earliest(zset)
	local head = call('ZRANGE', zset, 0, 0, 'WITHSCORES')[2]
	return head and tonumber(head) or math.huge
end
local function watch()
	first, soonest = math.min(earliest(DUE), earliest(RARE), earliest(READY)), math.huge
end
-- wake tells all that sleep that something happens at an instant. Who fears that he
-- has missed it looks at wakes.
local function wake(channel, hint, at)
	call('HINCRBY', META, 'wakes', 1)
	call('PUBLISH', channel, hint .. string.format('%.0f', at))
end
-- woken does so when something became the first to happen. It returns the instant, or
-- false.
local function woken(channel, hint)
	if soonest >= first then return false end
	wake(channel, hint, soonest)
	return soonest
end

-- wait puts a message where it waits for its due time.
local function wait(m)
	m.mark = 'W'
	call('ZADD', m.rare and RARE or DUE, m.due, m.id)
	if soonest and m.due < soonest then soonest = m.due end
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
	return m.key ~= '' and call('HGET', KEY, m.key) == m.id
end

-- Leases tell how many messages have ended since the last told of it: those that
-- have expired, and those that a lapse made dead. fell counts one.
local fallen = {expired = 0, died = 0}
local function fell(how)
	fallen[how] = fallen[how] + 1
	call('HINCRBY', META, how, 1)
end

-- drop forgets a message.
local function drop(m)
	leave(m)
	if holds(m) then call('HDEL', KEY, m.key) end
	call('HDEL', MSG, m.id)
	call('HDEL', STATE, m.id)
	if m.large then call('HDEL', BODY, m.id) end
end

-- die makes a message dead since at.
local function die(m, at, reason)
	leave(m)
	if holds(m) then call('HDEL', KEY, m.key) end
	m.mark, m.died, m.reason = 'D', at, reason
	call('ZADD', DEAD, at, m.id)
	if m.key ~= '' then call('ZADD', GRAVE, 0, grave(m)) end
	save(m)
end

-- lapse ends a lease at its deadline. The nonce goes on settling until something
-- else is decided.
local function lapse(m)
	if m.attempt >= m.max then
		die(m, m.deadline, 'lease lapsed')
		fell('died')
		return
	end
	leave(m)
	m.reason = 'lease lapsed'
	wait(m)
	save(m)
end

-- present is find for what stands now: a lease past its deadline has lapsed, and
-- what has expired is gone.
local function present(id)
	local m = find(id)
	if m and m.mark == 'L' and m.deadline <= now then lapse(m) end
	if m and m.mark == 'W' and m.expires < now then
		drop(m)
		fell('expired')
		return nil
	end
	return m
end

-- named finds what a ref means: by id any message, by key the live one.
local function named(id, key)
	if id == '' then
		id = call('HGET', KEY, key)
		if not id then return nil end
	end
	local m = present(id)
	if m and m.mark == 'D' and key ~= '' then return nil end
	return m
end

-- sweep brings the shard up to now: leases that are over lapse, and of RARE what
-- has come due takes its turn. It returns true when there is more to do than one
-- script should.
local function sweep()
	local over = call('ZRANGEBYSCORE', LEASES, '-inf', now, 'LIMIT', 0, CHUNK)
	for _, id in ipairs(over) do
		if not present(id) then call('ZREM', LEASES, id) end
	end
	if #over == CHUNK then return true end
	if call('EXISTS', RARE, READY) == 0 then return false end
	-- After the clock has stepped back, what is not due any more waits again.
	local early = call('ZRANGEBYSCORE', READY, '(' .. now, '+inf', 'LIMIT', 0, CHUNK)
	for _, id in ipairs(early) do
		local m = find(id)
		if m then
			leave(m)
			call('ZADD', RARE, m.due, id)
		else
			call('ZREM', READY, id)
		end
	end
	local due = call('ZRANGEBYSCORE', RARE, '-inf', now, 'LIMIT', 0, CHUNK)
	for _, id in ipairs(due) do
		local m = present(id)
		call('ZREM', RARE, id)
		if m then
			call('ZADD', READY, m.due, id)
			call('ZADD', TURN, m.priority, turn(m))
		end
	end
	return #early == CHUNK or #due == CHUNK
end

-- paused returns until when the shard is paused, math.huge for good; nil: it is not.
local function paused(till)
	if till == nil then till = call('HGET', META, 'paused') end
	if not till then return nil end
	if till == 'inf' then return math.huge end
	till = tonumber(till)
	if till > now then return till end
	call('HDEL', META, 'paused')
	return nil
end

-- content is what a large message has beside its record.
local function content(m)
	return m.large and call('HGET', BODY, m.id) or ''
end

-- stands is a message for the client: id, what has happened to it, record, content.
local function stands(m, whole)
	return {m.id, pack(m), m.record, whole and content(m) or ''}
end

-- behind returns up to limit ids of a sorted set with their scores, within bounds,
-- that come after a place in its order; an empty score: from the start.
local function behind(zset, min, max, score, id, limit)
	local from = 0
	if score ~= '' then
		from = call('ZCOUNT', zset, '-inf', '(' .. score)
		local to = from + call('ZCOUNT', zset, score, score)
		while from < to do
			local middle = math.floor((from + to) / 2)
			if call('ZRANGE', zset, middle, middle)[1] <= id then from = middle + 1 else to = middle end
		end
	end
	if min ~= '-inf' then
		from = math.max(from, call('ZCARD', zset) - call('ZCOUNT', zset, min, '+inf'))
	end
	local to = call('ZCOUNT', zset, '-inf', max) - 1
	to = math.min(to, from + limit - 1)
	if to < from then return {} end
	return call('ZRANGE', zset, from, to, 'WITHSCORES')
end
