-- Forgets queues found empty: KEYS as for register. ARGV is how many seconds ago a
-- queue must have been noted, then name and fingerprint of each. Answers the names
-- forgotten.
local before = redis.call('TIME')[1] - ARGV[1]
local gone = {}
for i = 2, #ARGV, 2 do
	local seen = redis.call('HGET', KEYS[2], ARGV[i])
	if not seen or tonumber(seen) < before then
		redis.call('ZREM', KEYS[1], ARGV[i])
		redis.call('HDEL', KEYS[2], ARGV[i])
		redis.call('HDEL', KEYS[3], ARGV[i + 1])
		gone[#gone + 1] = ARGV[i]
	end
end
return gone
