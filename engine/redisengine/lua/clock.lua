-- Each script begins with this file.
local call = redis.call
-- Locals are faster than globals.
local args, tonumber, byte, sub, ceil, format = ARGV, tonumber, string.byte, string.sub, math.ceil, string.format

-- The clock is the server's. ARGV begins with the call's deadline by that clock, in
-- microseconds. After it a call does nothing, because its caller may have acted otherwise.
-- In tests, "@" and a fixed time may follow.
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
