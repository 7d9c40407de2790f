-- Each script begins with this file.
local call = redis.call
-- Scripts run often, and globals are slow to find.
local args, tonumber, byte, sub, ceil, format = ARGV, tonumber, string.byte, string.sub, math.ceil, string.format

-- The clock is the server's. ARGV begins with the instant by that clock, in microseconds,
-- until which somebody waits for the call. Delivered later, a call does nothing: what it is
-- about may have been decided anew. A clock that a test has stopped may follow, after "@".
local us, raw, now
local function tick()
	local time, till = call('TIME'), tonumber(args[1])
	raw = time[1] * 1000000 + time[2]
	us = raw
	if not till then
		till, us = args[1]:match('(.*)@(.*)')
		till, us = tonumber(till), tonumber(us)
	end
	if raw > till then error({err = format('LATE %.0f', raw)}) end
	now = math.floor(us / 1000)
end
