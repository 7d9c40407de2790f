-- behind returns up to limit ids of a sorted set with their scores, within bounds,
-- that come after a place in its order; an empty score: from the start.
local function behind(zset, min, max, score, id, limit)
	local from = 0
	if score ~= '' then
		from = call('ZCOUNT', zset, '-inf', '(' .. score)
		local to = from + call('ZCOUNT', zset, score, score)
		while from < to do
			local middle = math.floor((from + to) / 2)
			if call('ZRANGE', zset, middle, middle)[1] <= id then from = middle + 1 else to = middle end
		end
	end
	if min ~= '-inf' then
		from = math.max(from, call('ZCARD', zset) - call('ZCOUNT', zset, min, '+inf'))
	end
	local to = call('ZCOUNT', zset, '-inf', max) - 1
	to = math.min(to, from + limit - 1)
	if to < from then return {} end
	return call('ZRANGE', zset, from, to, 'WITHSCORES')
end
