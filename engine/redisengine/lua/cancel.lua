-- Cancels messages. ARGV: the state that each must be in (a byte of messages().state, 0 for
-- any; '' if all are 0), who cancels ('' if nobody says; else the length of a name, how many
-- it cancels, the name, and so on), then id and key of each, one of them ''. Answers the
-- clock, and for each: 0 cancelled, 1 not found, 2 leased, else 10 + its state.
if replied ~= nil then
	local answer = {us, raw}
	for i = 3, (#args - 1) / 2 do answer[i] = 0 end
	return answer
end
local states, names, answer = args[4], args[5], {us, raw}

-- by returns who cancels the message at a place. Places are asked for in order.
local name, last, at = '', names == '' and math.huge or 2, 1
local function by(place)
	while last < place do
		local size, n = unpacked('>BI2', names, at)
		name, last, at = sub(names, at + 3, at + 2 + size), last + n, at + 3 + size
	end
	return name
end

-- one cancels the message at a place, which must be in the given state (0: any).
local function one(place, state)
	local id, key = args[2 * place], args[2 * place + 1]
	local M = messages()
	local m = M.named(id, key)
	if not m then return 1 end
	if state > 0 and state ~= M.state(m) then return 10 + M.state(m) end
	if m.mark == 'L' then return 2 end
	if m.mark == 'D' then M.drop(m) else M.finish(m, CANCELLED, now, by(place)) end
	return 0
end

-- Messages named by key usually wait in DUE: without a history a few variadic calls remove
-- them.
local quick = states == '' and history() == 0
local keys, places, n = {}, {}, 0
for place = 3, (#args - 1) / 2 do
	if quick and args[2 * place] == '' then
		n = n + 1
		keys[n], places[n] = args[2 * place + 1], place
	end
end
local gone, free, g = {}, {}, 0
if n > 0 then
	local found = call('HMGET', KEY, unpack(keys))
	local known, k, seen = {}, 0, {}
	for i = 1, n do
		local id = found[i]
		if id and #id == 8 and not seen[id] then
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

if g > 0 then
	call('ZREM', DUE, unpack(gone))
	call('HDEL', KEY, unpack(free))
	call('HDEL', MSG, unpack(gone))
	if call('EXISTS', STATE, BODY) > 0 then
		call('HDEL', STATE, unpack(gone))
		call('HDEL', BODY, unpack(gone))
	end
end
for place = 3, (#args - 1) / 2 do
	if not answer[place] then
		answer[place] = one(place, states ~= '' and byte(states, place - 2) or 0)
	end
end
return reply(answer, g == (#args - 5) / 2)
