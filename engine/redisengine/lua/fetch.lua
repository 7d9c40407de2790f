-- Shows messages by id as long as they are in a state: ARGV is the clock, the state,
-- "whole" for the contents too, how many bytes of them at most, and the ids. Answers
-- the clock and four values for each, '' where a message is not in that state any
-- more, and ends where so many bytes are reached.
tick()
local M = messages()
local answer, size, bytes = {us, raw}, 0, tonumber(ARGV[4])
for i = 5, #ARGV do
	if size >= bytes then break end
	local m = M.present(ARGV[i])
	local state
	if m then
		state = m.mark == 'L' and 'leased' or m.mark == 'D' and 'dead' or m.due > now and 'scheduled' or 'ready'
	end
	local s = state == ARGV[2] and M.stands(m, ARGV[3] == 'whole') or {ARGV[i], '', '', ''}
	for _, value in ipairs(s) do answer[#answer + 1] = value end
	if state == ARGV[2] and ARGV[3] == 'whole' then size = size + m.size end
end
return answer
