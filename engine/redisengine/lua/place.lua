-- rank returns how many members of a sorted set come before a place: a score and, unless '',
-- a member.
local function rank(zset, score, member)
	local from = call('ZCOUNT', zset, '-inf', '(' .. score)
	if member == '' then return from end
	local to = from + call('ZCOUNT', zset, score, score)
	while from < to do
		local middle = math.floor((from + to) / 2)
		if before(call('ZRANGE', zset, middle, middle)[1], member) then from = middle + 1 else to = middle end
	end
	return from
end
