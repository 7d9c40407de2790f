-- Removes messages in chunks. ARGV: the set (due, rare, ready, dead, finished or ended), the latest
-- creation time to remove in microseconds ('' to begin), and the place to start after.
-- Answers the clock, how many were removed, and the place to continue after, unless done; to
-- begin, whether to call again to sweep.
if args[5] == '' then return reply({us, raw, swept() and 1 or 0}) end
local M = messages()
local zset = ({due = DUE, rare = RARE, ready = READY, dead = DEAD, finished = FINISHED, ended = ENDED})[args[4]]
local last = tonumber(args[5])
local from = args[6] == '' and 0 or rank(zset, args[6], args[7] .. '\0')
local found = call('ZRANGE', zset, from, from + CHUNK - 1, 'WITHSCORES')
local n = 0
for i = 1, #found, 2 do
	local what, since = found[i], math.huge
	local m = zset ~= FINISHED and zset ~= ENDED and M.present(what)
	if m then
		since = m.created
	elseif zset == ENDED then
		since = found[i + 1] * 1000
	elseif zset == FINISHED then
		local _, memory = M.holder(what)
		if memory then
			_, _, _, since = struct.unpack(MEMORY, memory)
			since = since * 1000
		end
	end
	-- A time in the future is from before the clock stepped back.
	if since <= last or since > us + 1000000 and since < math.huge then
		if m then
			M.drop(m)
		elseif zset == ENDED then
			M.unlist({what})
		else
			call('HDEL', KEY, what)
			call('ZREM', FINISHED, what)
		end
		n = n + 1
	end
end
if #found < 2 * CHUNK then return reply({us, raw, n}) end
return reply({us, raw, n, found[#found], found[#found - 1]})
