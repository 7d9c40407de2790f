-- Reserves a block of ids: KEYS is the last one reserved here. Blocks are numbered by
-- the millisecond since 2026, so that one whose reservation was lost in a failover is
-- not reserved again. ARGV is how many such keys there are, and which this is, from 0:
-- each has blocks of its own.
local time = redis.call('TIME')
local block = time[1] * 1000 + math.floor(time[2] / 1000) - 1767225600000
block = math.max(block, tonumber(redis.call('GET', KEYS[1]) or 0) + 1)
block = block + (ARGV[2] - block) % ARGV[1]
redis.call('SET', KEYS[1], string.format('%.0f', block))
return {block}
