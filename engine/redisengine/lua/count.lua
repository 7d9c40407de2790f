-- Counts a shard. Answers the clock, whether to call again because
-- there was too much to sweep, how many are scheduled, ready, leased and dead, the
-- next due, the oldest ready, and until when the shard is paused ('' for good).
tick()
if sweep() then return {us, raw, 1} end
local scheduled = call('ZCOUNT', DUE, '(' .. now, '+inf') + call('ZCARD', RARE)
local ready = call('ZCOUNT', DUE, '-inf', now) + call('ZCARD', READY)
local next, oldest = earliest(RARE), math.min(earliest(DUE), earliest(READY))
local due = call('ZRANGEBYSCORE', DUE, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
if due then next = math.min(next, tonumber(due)) end
local till = paused(call('HGET', META, 'paused'))
return {
	us, raw, 0, scheduled, ready, call('ZCARD', LEASES), call('ZCARD', DEAD),
	next < math.huge and next, oldest <= now and oldest, till and (till < math.huge and till or '') or false,
}
