-- Reserves a block of ids. KEYS: the last one reserved here. ARGV: the number of such keys,
-- and the index of this one; each key has its own blocks. Blocks are numbered by the
-- millisecond since 2026, so that a block is not reserved again after a failover that lost
-- it.
tick()
local block = now - 1767225600000
block = math.max(block, tonumber(call('GET', KEYS[1]) or 0) + 1)
block = block + (args[3] - block) % args[2]
call('SET', KEYS[1], format('%.0f', block))
return {block}
