-- Redrives dead messages. ARGV: the ids. Answers the clock, the soonest due if others were
-- woken, and for each 1 if it is ready, 0 if it does not exist or its key is in use.
local M, before = messages(), first()
local answer = {us, raw, false}
for i = 4, #args do
	local m = M.present(args[i])
	if m and m.mark == 'D' and (m.key == '' or not M.named('', m.key)) then
		M.leave(m)
		if m.key ~= '' then M.hold(m) end
		m.due, m.expires, m.attempt, m.died, m.secret = now, math.huge, 0, 0, ''
		M.wait(m)
		M.save(m)
		answer[#answer + 1] = 1
	else
		answer[#answer + 1] = 0
	end
end
answer[3] = woken(before)
return reply(answer)
