-- Counts due messages per step. ARGV: the first instant, the step in milliseconds, and the
-- number of steps. Answers the clock, whether to call again to sweep, the number due before
-- the first instant, and the counts. A count costs O(log n).
tick()
if swept() then return {us, raw, 1} end
local from, step, steps = tonumber(args[4]), tonumber(args[5]), tonumber(args[6])
local answer = {us, raw, 0}
for i = 0, steps do answer[i + 4] = 0 end
for _, zset in ipairs({DUE, RARE, READY}) do
	answer[4] = answer[4] + call('ZCOUNT', zset, '-inf', '(' .. args[4])
	if call('ZCOUNT', zset, from, '(' .. format('%.0f', from + step * steps)) > 0 then
		for i = 1, steps do
			local at = from + step * (i - 1)
			answer[i + 4] = answer[i + 4] + call('ZCOUNT', zset, at, '(' .. format('%.0f', at + step))
		end
	end
end
return answer
