-- Cancels messages: ARGV has id and key of each, one of them ''.
-- Answers the clock, 0 where it was not needed, and for each 0 cancelled, 1 not found,
-- 2 leased.
local ids, dues = {}, {}
do
	local keys, n = {}, 0
	for i = 4, #args, 2 do
		if args[i] == '' then
			n = n + 1
			keys[n] = args[i + 1]
		end
	end
	if n > 0 then
		local found = call('HMGET', KEY, unpack(keys))
		local known, k = {}, 0
		for i = 1, n do
			if found[i] then
				ids[keys[i]] = found[i]
				k = k + 1
				known[k] = found[i]
			end
		end
		if k > 0 then
			local scores = call('ZMSCORE', DUE, unpack(known))
			for i = 1, k do dues[known[i]] = scores[i] end
		end
	end
end

-- Those that wait in DUE and are named by key, the common case, gather for a few
-- variadic calls.
local gone, free, g = {}, {}, 0
local function write()
	if g == 0 then return end
	call('ZREM', DUE, unpack(gone))
	call('HDEL', KEY, unpack(free))
	call('HDEL', MSG, unpack(gone))
	if call('EXISTS', STATE, BODY) > 0 then
		call('HDEL', STATE, unpack(gone))
		call('HDEL', BODY, unpack(gone))
	end
	gone, free, g = {}, {}, 0
end

us, raw = 0, 0
local answer, n = {0, 0}, 2
for i = 4, #args, 2 do
	local id, key, done = args[i], args[i + 1], 0
	local known = id == '' and ids[key]
	if known and dues[known] then
		dues[known], ids[key] = false, nil
		g = g + 1
		gone[g], free[g] = known, key
	elseif id == '' and not known then
		done = 1
	else
		write()
		if us == 0 then tick() end
		local m = messages().named(id, key)
		if not m then
			done = 1
		elseif m.mark == 'L' then
			done = 2
		else
			messages().drop(m)
			if m.key ~= '' then dues[m.id], ids[m.key] = false, nil end
		end
	end
	n = n + 1
	answer[n] = done
end
write()
answer[1], answer[2] = us, raw
return answer
