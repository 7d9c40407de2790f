-- Pauses or resumes a shard: ARGV is the clock, the channel and the hint for those
-- who sleep, and until when: "inf" for good, "+" and microseconds, or '' to resume.
-- Answers the clock.
tick()
if ARGV[4] == '' then
	call('HDEL', META, 'paused')
elseif ARGV[4] == 'inf' then
	call('HSET', META, 'paused', 'inf')
else
	call('HSET', META, 'paused', string.format('%.0f', resolve(ARGV[4])))
end
wake(ARGV[2], ARGV[3], now)
return {us, raw}
