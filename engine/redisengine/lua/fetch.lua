-- Returns messages by id while they are in a state. ARGV: the state (messages().state; 5:
-- finished, whose second value is the entry),
-- "whole" to include contents, the most bytes of these, and the ids. Answers the clock and
-- four values for each, '' where the message has left the state. It ends when the bytes are
-- reached.
tick()
local M = messages()
local answer, size, bytes = {us, raw}, 0, tonumber(args[6])
for i = 7, #args do
	if size >= bytes then break end
	local s = {args[i], '', '', ''}
	if args[4] == '5' then
		s[2] = M.listed(args[i]) or ''
	else
		local m = M.present(args[i])
		if m and M.state(m) == tonumber(args[4]) then s = M.stands(m, args[5] == 'whole') end
	end
	for _, value in ipairs(s) do answer[#answer + 1] = value end
	if args[5] == 'whole' then size = size + #s[3] + #s[4] end
end
return answer
