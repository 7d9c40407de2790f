-- Notes that queues are in use: KEYS are the names in order, when each was last
-- noted, and the names by their fingerprints. ARGV is name and fingerprint of each.
-- Answers for each the name that has the fingerprint.
local seen, answer = redis.call('TIME')[1], {}
for i = 1, #ARGV, 2 do
	redis.call('ZADD', KEYS[1], 0, ARGV[i])
	redis.call('HSET', KEYS[2], ARGV[i], seen)
	redis.call('HSETNX', KEYS[3], ARGV[i + 1], ARGV[i])
	answer[#answer + 1] = redis.call('HGET', KEYS[3], ARGV[i + 1])
end
return answer
