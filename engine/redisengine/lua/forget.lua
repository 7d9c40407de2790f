-- Removes empty queues from the registry. KEYS as in register.lua. ARGV: for how many
-- seconds a queue must not have been registered, then name and fingerprint of each. Answers
-- the names removed.
tick()
local before = now / 1000 - args[2]
local gone = {}
for i = 3, #args, 2 do
	local seen = call('HGET', KEYS[2], args[i])
	if not seen or tonumber(seen) < before then
		call('ZREM', KEYS[1], args[i])
		call('HDEL', KEYS[2], args[i])
		call('HDEL', KEYS[3], args[i + 1])
		gone[#gone + 1] = args[i]
	end
end
return gone
