-- Removes messages in chunks: ARGV is the clock, which set (due, rare, ready or
-- dead), when the last to remove was created, in microseconds ('' to begin), and the place behind which to
-- begin. Answers the clock, how many were removed, and the place to go on behind,
-- unless that was all; to begin, whether to call again because there was too much to
-- sweep.
tick()
if ARGV[3] == '' then return {us, raw, sweep() and 1 or 0} end
local M = messages()
local zset = ({due = DUE, rare = RARE, ready = READY, dead = DEAD})[ARGV[2]]
local last = tonumber(ARGV[3])
local found = behind(zset, '-inf', '+inf', ARGV[4], ARGV[5], CHUNK)
local n = 0
for i = 1, #found, 2 do
	local m = M.find(found[i])
	if m and m.created <= last then
		M.drop(m)
		n = n + 1
	end
end
if #found < 2 * CHUNK then return {us, raw, n} end
return {us, raw, n, found[#found], found[#found - 1]}
