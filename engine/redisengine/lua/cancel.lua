-- Cancels messages: ARGV has id and key of each, one of them ''. Answers the clock, 0
-- where it was not needed, and for each 0 cancelled, 1 not found, 2 leased.
if told ~= nil then
	local answer = {us, raw}
	for i = 4, #args, 2 do answer[i / 2 + 1] = 0 end
	return answer
end
us, raw = 0, 0
local answer = {0, 0}

-- one cancels one message.
local function one(id, key)
	local M = messages()
	local m = M.named(id, key)
	if not m then return 1 end
	if m.mark == 'L' then return 2 end
	M.drop(m)
	return 0
end

-- Those named by key mostly wait in DUE: a few variadic calls remove them.
local keys, places, n = {}, {}, 0
for i = 4, #args, 2 do
	if args[i] == '' then
		n = n + 1
		keys[n], places[n] = args[i + 1], i / 2 + 1
	end
end
local gone, free, g = {}, {}, 0
if n > 0 then
	local found = call('HMGET', KEY, unpack(keys))
	local known, k, seen = {}, 0, {}
	for i = 1, n do
		local id = found[i]
		if id and not seen[id] then
			seen[id] = true
			k = k + 1
			known[k], keys[k], places[k] = id, keys[i], places[i]
		end
	end
	local scores = k > 0 and call('ZMSCORE', DUE, unpack(known))
	for i = 1, k do
		if scores[i] then
			g = g + 1
			gone[g], free[g] = known[i], keys[i]
			answer[places[i]] = 0
		end
	end
end

-- The clock is looked at before anything is written, since it may be objected to.
for i = 4, #args, 2 do
	if not answer[i / 2 + 1] then
		tick()
		break
	end
end
if g > 0 then
	call('ZREM', DUE, unpack(gone))
	call('HDEL', KEY, unpack(free))
	call('HDEL', MSG, unpack(gone))
	if call('EXISTS', STATE, BODY) > 0 then
		call('HDEL', STATE, unpack(gone))
		call('HDEL', BODY, unpack(gone))
	end
end
for i = 4, #args, 2 do
	local place = i / 2 + 1
	if not answer[place] then answer[place] = one(args[i], args[i + 1]) end
end
answer[1], answer[2] = us, raw
return tell(answer, g == (#args - 3) / 2)
