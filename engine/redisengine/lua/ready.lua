-- usuals returns up to n + 1 ready messages of DUE and their dues. Reading scores from text
-- is slow, so equal scores are read once.
local function usuals(n)
	local ids, dues = {}, {}
	local last = call('ZRANGE', DUE, n, n, 'WITHSCORES')[2]
	if last and tonumber(last) <= now and call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2] == last then
		ids, last = call('ZRANGE', DUE, 0, n), tonumber(last)
		for i = 1, #ids do dues[i] = last end
		return ids, dues
	end
	local both = call('ZRANGEBYSCORE', DUE, '-inf', now, 'WITHSCORES', 'LIMIT', 0, n + 1)
	for i = 1, #both / 2 do ids[i], dues[i] = both[2 * i - 1], tonumber(both[2 * i]) end
	return ids, dues
end

-- ready, after sweep, returns up to n ready messages in the order (priority, due, id), and
-- whether there are more. Expired ones may be among them. rares as sweep returns it.
local function ready(n, rares)
	local usual, since = usuals(n)
	local rare = rares and call('ZRANGE', TURN, 0, n, 'WITHSCORES') or {}
	local ids, dues, priorities = {}, {}, {}
	local u, r, at = 1, 1, 0
	while at < n and (u <= #usual or r <= #rare) do
		local priority, due, id = USUAL, since[u], usual[u]
		if r <= #rare then
			local other, stands = tonumber(rare[r + 1]), tonumber(rare[r]:sub(1, 15)) - 62135596800000
			local name = rare[r]:sub(16)
			if not id or other < USUAL or other == USUAL and (stands < due or stands == due and before(name, id)) then
				priority, due, id = other, stands, name
			end
		end
		if id == usual[u] then u = u + 1 else r = r + 2 end
		at = at + 1
		ids[at], dues[at], priorities[at] = id, due, priority
	end
	return ids, dues, priorities, u <= #usual or r <= #rare
end
