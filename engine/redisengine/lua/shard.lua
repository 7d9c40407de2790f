-- One shard of a queue: its keys, which are all in one hash slot, and what every script
-- needs. Each script of a shard begins with this file.
--
-- DUE     sorted set  id by due time: waiting messages of the usual priority that never expire
-- RARE    sorted set  id by due time: waiting messages with another priority or an expiry
-- READY   sorted set  id by due time: those of RARE that have come due
-- TURN    sorted set  due and id by priority: the same, in the order of leases
-- LEASES  sorted set  id by deadline
-- STATE   hash        id to the message's past; none before its first lease
-- MSG     hash        id to the record
-- BODY    hash        id to a large content
-- KEY     hash        key to the id of the live message that holds it, and "+" if the key is to
--                     be remembered; else to the memory of a finished message
-- DEAD    sorted set  id by death
-- GRAVE   sorted set  hash of the key, death and id of dead messages with a key, in that order
-- FINISHED sorted set key by when its memory expires
-- ENDED   sorted set  id by end: the finished messages that are listed
-- HISTORY hash        id to what is left of these; "=" and a key to id and end of the newest
-- META    hash        wakes, end of the pause, expiries and deaths to report, settings, and the
--                     history of the client that listed last
--
-- An id is 8 bytes, big-endian. Redis orders equal scores by member, hence by (due, id).
-- Instants are Unix milliseconds.
--
-- ARGV begins as in clock.lua, then the channel with the store's history after it, and the
-- hint for sleeping engines; each script describes the rest.
local DUE, RARE, READY, TURN, LEASES, STATE, MSG, BODY, KEY, DEAD, GRAVE, FINISHED, ENDED, HISTORY, META = unpack(KEYS)

-- Flags of a message.
local IS_RARE, IS_LARGE, IS_REMEMBERED = 1, 2, 4
-- The priority of messages in DUE.
local USUAL = 1024
-- How many messages one script processes beyond those it is called for, at up to 20 commands
-- each. It is bounded because a script blocks the server. room is how many are left.
local CHUNK = 500
local room = CHUNK

-- resolve converts a due time: "+" and microseconds from now, or milliseconds, with "~"
-- after them if a fraction was cut off.
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

-- deadline returns the end of a lease that begins now; it is always in the future.
local function deadline(ttr)
	return math.max(now + 1, ceil((us + ttr) / 1000))
end

-- spread is Policy.Spread of package engine: by how many milliseconds a lease outlasts its
-- ttr.
local function spread(id, attempt, max, isolated)
	if not isolated or attempt < 2 or attempt >= max then return 0 end
	local window = math.min(60000, 1000 * 2 ^ math.min(attempt - 1, 6))
	return struct.unpack('>I4', id, 5) * 40503 % window
end

-- A record, as in record.go, begins with flags, creation time in microseconds and key;
-- policy and content follow as in package codec. The policy's first byte says which fields
-- follow; of the others only these have a default other than 0.
local HEAD = '>BI7I2c0B'
local MAX_ATTEMPTS, TTR = 20, 60000000

local unpacked = struct.unpack

-- millis reads nanoseconds as milliseconds: a double cannot hold the nanoseconds.
local function millis(record, at)
	local high, low, behind = unpacked('>I4I4', record, at)
	return high * 4294 + ceil((high * 967296 + low) / 1000000), behind
end

-- head parses a record: flags, created, key, max attempts, ttr in microseconds, expire after
-- in milliseconds, priority, remember in milliseconds, whether it is isolated.
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

-- usual is a fast head for records whose policy sets at most a backoff and remember. It
-- returns flags and key as in a past, and nothing for other or damaged records.
local function usual(record)
	local flags, _, _, _, _, _, _, _, high, low = byte(record, 1, 10)
	if not low or flags % 2 == IS_RARE then return end
	local last = 10 + 256 * high + low
	local has = byte(record, last + 1)
	if has and has % 16 == 0 then return flags, sub(record, 9, last) end
end

-- A past: mark (W waits, L is leased, D is dead), flags, attempt, max attempts, due,
-- expires, deadline and start of the lease (of a dead message its start and the death), secret
-- of the lease, key, failures, and the worker of the lease, which takes the rest.
local PAST = '>c1BI4I4ddddBc0I2c0I2c0'

-- parse parses a record, and story a past; the first value is false if it is damaged. A
-- damaged message is skipped, so that it does not block others.
local function parse(record) return pcall(head, record) end
local function story(past) return pcall(unpacked, PAST, past) end

-- Settings in META begin with their revision and this shard's limits. These are how long dead
-- messages are kept in milliseconds, the most dead, the most live, the most leased, leases a
-- second, and their burst. 0 is no limit. How long finished messages are listed and how many
-- may follow (0 is as the store says, less not at all). Only clients read the rest, in JSON.
local LIMITS, LISTED = '>ddddddd', '>dd'
local JSON = byte('{')
local limits -- nil: not read yet; false: none

-- know parses settings, and settings returns the limits in META. Damaged ones count as none.
local function know(value)
	if not value or #value < struct.size(LIMITS) then
		limits = false
		return
	end
	limits = {}
	local l = limits
	l.revision, l.keep, l.dead, l.live, l.flight, l.rate, l.burst = unpacked(LIMITS, value)
	local at = struct.size(LIMITS) + 1
	l.history, l.most = 0, 0
	if #value > at + 14 and byte(value, at) ~= JSON then l.history, l.most = unpacked(LISTED, value, at) end
end
local function settings()
	if limits == nil then know(call('HGET', META, 'settings')) end
	return limits
end

-- keptSince returns the earliest death that the settings keep.
local function keptSince()
	local l = settings()
	return l and l.keep > 0 and now - l.keep or -math.huge
end

-- history returns for how many milliseconds finished messages are listed, 0 for none, and
-- how many of the shard. others returns the same as the client said that listed last, with
-- most as limited by the settings. unlisted returns the last end of messages that are no
-- longer listed.
local function history()
	local l, keep, most = settings(), args[2]:match(' (%d+) (%d+)')
	if l and l.history ~= 0 then keep = math.max(0, l.history) end
	if l and l.most > 0 then most = l.most end
	return tonumber(keep), tonumber(most)
end
local function others(most)
	local keep, theirs = (call('HGET', META, 'history') or ''):match('(%d+) (%d+)')
	if not keep then return 0, most end
	return tonumber(keep), limits and limits.most > 0 and most or tonumber(theirs)
end
local function unlisted(keep)
	keep = keep or history()
	return keep > 0 and now - keep or math.huge
end

local function pack(m)
	local ends, began = m.deadline, m.started
	if m.mark == 'D' then ends, began = m.started, m.died end
	return struct.pack(PAST, m.mark, m.flags, m.attempt, m.max, m.due, m.expires, ends, began,
		#m.secret, m.secret, #m.key, m.key, #m.failures, m.failures) .. (m.secret ~= '' and m.worker or '')
end

-- earliest returns the least score of a sorted set.
local function earliest(zset)
	local head = call('ZRANGE', zset, 0, 0, 'WITHSCORES')[2]
	return head and tonumber(head) or math.huge
end

-- wake tells all sleeping engines that something happens at an instant. Engines that may
-- have missed a hint compare wakes, so a failing publish does no harm. Wakes start at the
-- time, so that they differ from all earlier ones after META was deleted.
local function wake(at)
	local wakes = call('HINCRBY', META, 'wakes', 1)
	if wakes == 1 then
		wakes = raw
		call('HSET', META, 'wakes', format('%.0f', wakes))
	end
	redis.pcall('PUBLISH', args[2]:match('%S+'), args[3] .. format('%.0f', at))
	return wakes
end

-- Leases report how many messages have expired, and died by a lapse, since the last report.
-- fell counts one.
local fallen = {expired = 0, died = 0}
local function fell(how)
	fallen[how] = fallen[how] + 1
	call('HINCRBY', META, how, 1)
end
