-- Registers queues. KEYS: the names in order, when each was last registered, and the names
-- by fingerprint. ARGV: name and fingerprint of each. Answers nothing.
tick()
local seen = format('%.0f', now / 1000)
for i = 2, #args, 2 do
	call('ZADD', KEYS[1], 0, args[i])
	call('HSET', KEYS[2], args[i], seen)
	call('HSET', KEYS[3], args[i + 1], args[i])
end
return {}
