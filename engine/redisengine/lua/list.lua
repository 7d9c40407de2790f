-- Lists ids by state. ARGV: the state, the first place and the end (each a score and an id,
-- '' sorting before all), how many at most, and "newest" for the last of them. Answers the
-- clock, whether to call again to sweep, then score and id of each.
tick()
if swept() then return {us, raw, 1} end
local state, limit = args[4], tonumber(args[9])
local parts = {
	scheduled = {DUE, RARE},
	ready = {DUE, READY, RARE},
	leased = {LEASES},
	dead = {DEAD},
	finished = {ENDED},
}
local all = {}
for _, zset in ipairs(parts[state]) do
	local from, to = rank(zset, args[5], args[6]), rank(zset, args[7], args[8])
	if state == 'dead' then
		from = math.max(from, rank(zset, format('%.0f', keptSince()), ''))
	elseif state == 'finished' then
		from = math.max(from, call('ZCOUNT', zset, '-inf', format('%.0f', unlisted())))
	else
		local past = call('ZCOUNT', zset, '-inf', now)
		if state == 'ready' then to = math.min(to, past) else from = math.max(from, past) end
	end
	if args[10] == 'newest' then from = math.max(from, to - limit) else to = math.min(to, from + limit) end
	local found = from < to and call('ZRANGE', zset, from, to - 1, 'WITHSCORES') or {}
	for i = 1, #found, 2 do all[#all + 1] = {tonumber(found[i + 1]), found[i]} end
end
local sign = args[10] == 'newest' and -1 or 1
table.sort(all, function(a, b)
	if a[1] ~= b[1] then return a[1] * sign < b[1] * sign end
	if sign < 0 then a, b = b, a end
	return before(a[2], b[2])
end)
local answer = {us, raw, 0}
for i = 1, math.min(limit, #all) do
	answer[#answer + 1], answer[#answer + 2] = all[i][1], all[i][2]
end
return answer
