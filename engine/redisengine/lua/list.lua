-- Lists ids by state: ARGV has the state, the place behind which to begin
-- (score and id, '' for the start), and how many at most. Answers the clock, whether
-- to call again because there was too much to sweep, then score and id of each.
tick()
if sweep() then return {us, raw, 1} end
local state, limit = args[4], tonumber(args[7])
local parts = {
	scheduled = {{DUE, '(' .. now, '+inf'}, {RARE, '(' .. now, '+inf'}},
	ready = {{DUE, '-inf', now}, {READY, '-inf', now}, {RARE, '-inf', now}},
	leased = {{LEASES, '(' .. now, '+inf'}},
	dead = {{DEAD, '-inf', '+inf'}},
}
local all = {}
for _, part in ipairs(parts[state]) do
	local found = behind(part[1], part[2], part[3], args[5], args[6], limit)
	for i = 1, #found, 2 do all[#all + 1] = {tonumber(found[i + 1]), found[i]} end
end
table.sort(all, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end)
local answer = {us, raw, 0}
for i = 1, math.min(limit, #all) do
	answer[#answer + 1], answer[#answer + 2] = all[i][1], all[i][2]
end
return answer
