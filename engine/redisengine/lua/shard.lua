-- One shard of a queue: its keys, which are all in one hash slot, the clock, and what
-- every script needs. Each script of a shard begins with this file.
--
--   DUE     sorted set  id by due time: waiting messages of the usual priority that never expire
--   RARE    sorted set  id by due time: waiting messages with another priority or an expiry
--   READY   sorted set  id by due time: those of RARE that have come due
--   TURN    sorted set  due and id by priority: the same, in the order in which they go out
--   LEASES  sorted set  id by deadline
--   STATE   hash        id to what has happened to a message; none before its first lease
--   MSG     hash        id to the message
--   BODY    hash        id to a large content
--   KEY     hash        key to the id of the live message that holds it, and "+" if it leaves
--                       the key behind; else to the memory of the one that has
--   DEAD    sorted set  id by death
--   GRAVE   sorted set  hash of the key, death and id of dead messages with a key, in that order
--   FINISHED sorted set key by when it is forgotten, of those with a memory
--   META    hash        wakes, until when it is paused, how many have expired and died, settings
--
-- An id is 8 bytes, big-endian, so that Redis, which orders equal scores by member, orders
-- by (due, id). Instants are Unix milliseconds.
--
-- ARGV begins as clock.lua says, with the channel and the hint for those who sleep; each
-- script says what follows.
local DUE, RARE, READY, TURN, LEASES, STATE, MSG, BODY, KEY, DEAD, GRAVE, FINISHED, META = unpack(KEYS)

-- Flags of a message.
local IS_RARE, IS_LARGE, IS_REMEMBERED = 1, 2, 4
-- The priority of messages in DUE.
local USUAL = 1024
-- How many messages one script looks after beside those it is called for, so that none
-- holds up the server for long: each takes up to 20 commands. room is how many are left.
local CHUNK = 500
local room = CHUNK

-- resolve turns a due time as sent into an instant: "+" and microseconds from now,
-- or milliseconds, with "~" behind if a fraction was cut off.
local function resolve(due)
	if byte(due) == 43 then
		local span = tonumber(due)
		return span > 0 and ceil((us + span) / 1000) or now
	end
	if byte(due, -1) == 126 then
		local at = tonumber(due:sub(1, -2))
		return at >= now and at + 1 or at
	end
	return tonumber(due)
end

-- deadline is that of a lease which begins now, never already over.
local function deadline(ttr)
	return math.max(now + 1, ceil((us + ttr) / 1000))
end

-- spread is Policy.Spread of package engine: by how much, in milliseconds, a lease outlasts
-- its ttr. isolated is what the policy says.
local function spread(id, attempt, max, isolated)
	if not isolated or attempt < 2 or attempt >= max then return 0 end
	local window = math.min(60000, 1000 * 2 ^ math.min(attempt - 1, 6))
	return struct.unpack('>I4', id, 5) * 40503 % window
end

-- A message begins, as in record.go, with flags, created in microseconds and key; then
-- come the policy and the content as in package codec. The policy begins with a byte that
-- says which of its fields follow: of the others only these differ from 0.
local HEAD = '>BI7I2c0B'
local MAX_ATTEMPTS, TTR = 20, 60000000

local unpacked = struct.unpack

-- millis reads so many nanoseconds, as milliseconds: a double does not hold them.
local function millis(record, at)
	local high, low, behind = unpacked('>I4I4', record, at)
	return high * 4294 + ceil((high * 967296 + low) / 1000000), behind
end

-- head takes a record apart: flags, created, key, max attempts, ttr in microseconds,
-- expire after in milliseconds, priority, remember in milliseconds, whether it is isolated.
local function head(record)
	local flags, created, key, has, at = unpacked(HEAD, record)
	local max, ttr, expire, priority, remember = MAX_ATTEMPTS, TTR, 0, USUAL, 0
	if has > 0 then
		if has % 2 >= 1 then priority, at = unpacked('>I4', record, at) end
		if has % 4 >= 2 then max, at = unpacked('>I4', record, at) end
		if has % 8 >= 4 then
			ttr, at = unpacked('>I8', record, at)
			ttr = ceil(ttr / 1000)
		end
		if has % 16 >= 8 then expire, at = millis(record, at) end
		if has % 64 >= 32 then remember = millis(record, at) end
	end
	return flags, created, key, max, ttr, expire, priority, remember, has % 128 < 64
end

-- usual is a quick head for a record of the usual policy, but for a backoff and remember:
-- flags and key, as a past has that. It returns nothing for any other, and for one that is damaged.
local function usual(record)
	local flags, _, _, _, _, _, _, _, high, low = byte(record, 1, 10)
	if not low or flags % 2 == IS_RARE then return end
	local last = 10 + 256 * high + low
	local has = byte(record, last + 1)
	if has and has % 16 == 0 then return flags, sub(record, 9, last) end
end

-- What has happened to it: mark (W waits, L is leased, D is dead), flags, attempt,
-- max attempts, due, expires, deadline, died, secret of the lease, key, reason.
local PAST = '>c1BI4I4ddddBc0I2c0I2c0'

-- parse takes a record apart, and story a past; the first value is false when that is
-- damaged. Such a message is treated as not there: it must not stand in the way of others.
local function parse(record) return pcall(head, record) end
local function story(past) return pcall(unpacked, PAST, past) end

-- The settings of the queue as META has them begin with their revision and the limits: how
-- long the dead are kept in milliseconds, and of each what is this shard's share: the most
-- dead, the most live, the most leased, leases a second, and how many of these at once. 0 is
-- none. The rest is for clients.
local LIMITS = '>ddddddd'
local limits -- nil: not read yet; false: there are none

-- know reads settings, and settings returns the limits of those that META has. Damaged ones
-- are none.
local function know(value)
	if not value or #value < struct.size(LIMITS) then
		limits = false
		return
	end
	limits = {}
	local l = limits
	l.revision, l.keep, l.dead, l.live, l.flight, l.rate, l.burst = unpacked(LIMITS, value)
end
local function settings()
	if limits == nil then know(call('HGET', META, 'settings')) end
	return limits
end

-- keptSince is when the oldest of the dead that are still there may have died.
local function keptSince()
	local l = settings()
	return l and l.keep > 0 and now - l.keep or -math.huge
end

local function pack(m)
	return struct.pack(PAST, m.mark, m.flags, m.attempt, m.max, m.due, m.expires, m.deadline, m.died,
		#m.secret, m.secret, #m.key, m.key, #m.reason, m.reason)
end

-- earliest returns the least score of a sorted set.
local function earliest(zset)
	local head = call('ZRANGE', zset, 0, 0, 'WITHSCORES')[2]
	return head and tonumber(head) or math.huge
end

-- wake tells all that sleep that something happens at an instant. Who fears that he
-- has missed it looks at wakes, so that a hint which may not be published fails nothing:
-- the writes before it are done. They begin with the time: after META was forgotten they
-- are not as anybody knows them.
local function wake(at)
	local wakes = call('HINCRBY', META, 'wakes', 1)
	if wakes == 1 then
		wakes = raw
		call('HSET', META, 'wakes', format('%.0f', wakes))
	end
	redis.pcall('PUBLISH', args[2], args[3] .. format('%.0f', at))
	return wakes
end

-- Leases tell how many messages have ended since the last told of it: those that
-- have expired, and those that a lapse made dead. fell counts one.
local fallen = {expired = 0, died = 0}
local function fell(how)
	fallen[how] = fallen[how] + 1
	call('HINCRBY', META, how, 1)
end
