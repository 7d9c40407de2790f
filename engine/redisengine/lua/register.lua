-- Notes that a queue is in use: KEYS are the names in order, when each was last
-- noted, and the names by their fingerprints. ARGV is name and fingerprint. Answers
-- the name that has the fingerprint.
redis.call('ZADD', KEYS[1], 0, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], redis.call('TIME')[1])
redis.call('HSETNX', KEYS[3], ARGV[2], ARGV[1])
return {redis.call('HGET', KEYS[3], ARGV[2])}
