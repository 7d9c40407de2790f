-- Counts a shard. Answers the clock; whether to call again to sweep; the numbers of
-- scheduled, ready, leased and dead messages, of remembered keys and of listed messages; the
-- next due; the oldest ready; the end of the pause ('' until resumed); the settings ('' for
-- none); and how many messages the history has, listed or not.
tick()
if swept() then return {us, raw, 1} end
-- Without writes, due messages are still in RARE, and expired leases count as ready even if
-- the attempt was the last.
local over = call('ZCOUNT', LEASES, '-inf', now)
local scheduled = call('ZCOUNT', DUE, '(' .. now, '+inf') + call('ZCOUNT', RARE, '(' .. now, '+inf')
local ready = call('ZCOUNT', DUE, '-inf', now) + call('ZCOUNT', RARE, '-inf', now) + call('ZCARD', READY) + over
local next, oldest = math.huge, math.min(earliest(DUE), earliest(RARE), earliest(READY))
for _, zset in ipairs({DUE, RARE}) do
	local due = call('ZRANGEBYSCORE', zset, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
	if due then next = math.min(next, tonumber(due)) end
end
local meta = call('HMGET', META, 'paused', 'settings')
local till = paused(meta[1])
return {
	us, raw, 0, scheduled, ready, call('ZCARD', LEASES) - over, call('ZCOUNT', DEAD, format('%.0f', keptSince()), '+inf'),
	call('ZCOUNT', FINISHED, '(' .. now, '+inf'), call('ZCOUNT', ENDED, '(' .. format('%.0f', unlisted()), '+inf'), next < math.huge and next, oldest <= now and oldest, till and (till < math.huge and till or '') or false,
	settings() and meta[2] or '', call('ZCARD', ENDED),
}
