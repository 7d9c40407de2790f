-- Pauses or resumes a shard. ARGV: "inf" until resumed, "+" and microseconds, or '' to
-- resume. Answers the clock and 0.
if args[4] == '' then
	call('HDEL', META, 'paused')
elseif args[4] == 'inf' then
	call('HSET', META, 'paused', 'inf')
else
	call('HSET', META, 'paused', format('%.0f', resolve(args[4])))
end
wake(now)
return reply({us, raw, 0})
