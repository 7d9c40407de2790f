-- Reserves a block of ids: KEYS is the last one reserved here. Blocks are numbered by
-- the millisecond since 2026, so that one whose reservation was lost in a failover is
-- not reserved again. ARGV is how many such keys there are, and which this is, from 0:
-- each has blocks of its own.
tick()
local block = now - 1767225600000
block = math.max(block, tonumber(call('GET', KEYS[1]) or 0) + 1)
block = block + (args[3] - block) % args[2]
call('SET', KEYS[1], format('%.0f', block))
return {block}
