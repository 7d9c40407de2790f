-- Removes messages in chunks: ARGV is the clock, which set (due, rare, ready or
-- dead), the last seq to remove ('' to be told it), and the place behind which to
-- begin. Answers the clock, how many were removed, and the place to go on behind,
-- unless that was all.
if ARGV[3] == '' then
	while sweep() do end
	return {us, raw, tonumber(call('HGET', META, 'seq') or 0)}
end
local zset = ({due = DUE, rare = RARE, ready = READY, dead = DEAD})[ARGV[2]]
local seq = tonumber(ARGV[3])
local found = behind(zset, '-inf', '+inf', ARGV[4], ARGV[5], CHUNK)
local n = 0
for i = 1, #found, 2 do
	local m = find(found[i])
	if m and m.seq <= seq then
		drop(m)
		n = n + 1
	end
end
if #found < 2 * CHUNK then return {us, raw, n} end
return {us, raw, n, found[#found], found[#found - 1]}
