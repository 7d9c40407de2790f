-- Cancels messages: ARGV is the clock, then id and key of each, one of them ''.
-- Answers the clock and for each 0 cancelled, 1 not found, 2 leased.
local keys = {}
for i = 2, #ARGV, 2 do
	if ARGV[i] == '' then keys[#keys + 1] = ARGV[i + 1] end
end
local ids, dues = {}, {}
if #keys > 0 then
	local found = call('HMGET', KEY, unpack(keys))
	local known = {}
	for n, key in ipairs(keys) do
		if found[n] then
			ids[key] = found[n]
			known[#known + 1] = found[n]
		end
	end
	if #known > 0 then
		local scores = call('ZMSCORE', DUE, unpack(known))
		for n, id in ipairs(known) do dues[id] = scores[n] end
	end
end

-- Those that wait in DUE and are named by key, the common case, gather for a few
-- variadic calls.
local gone, free = {}, {}
local function write()
	if #gone == 0 then return end
	call('ZREM', DUE, unpack(gone))
	call('HDEL', KEY, unpack(free))
	for _, hash in ipairs({MSG, STATE, BODY}) do call('HDEL', hash, unpack(gone)) end
	gone, free = {}, {}
end
local answer = {us, raw}
for i = 2, #ARGV, 2 do
	local id, key = ARGV[i], ARGV[i + 1]
	local known = id == '' and ids[key]
	if known and dues[known] then
		dues[known], ids[key] = false, nil
		gone[#gone + 1], free[#free + 1] = known, key
		answer[#answer + 1] = 0
	elseif id == '' and not known then
		answer[#answer + 1] = 1
	else
		write()
		local m = named(id, key)
		if not m then
			answer[#answer + 1] = 1
		elseif m.mark == 'L' then
			answer[#answer + 1] = 2
		else
			drop(m)
			if m.key ~= '' then
				dues[m.id], ids[m.key] = false, nil
			end
			answer[#answer + 1] = 0
		end
	end
end
write()
return answer
