-- Gives back what a call leased whose answer was lost: ARGV has the seed of that call's
-- nonces; id and key of the message that it claimed, one of them ''; or of a lease ''
-- and '', and how many of the messages that it noted in KEYS[13] have been looked at.
-- Answers the clock, how many were given back, and whether there are more to look at.
tick()
local M, before = messages(), first()
local seed, ids, more = args[4], {}, 0
if KEYS[13] then
	local taken = call('GET', KEYS[13]) or ''
	if taken:sub(1, #seed) == seed then
		local from = #seed + 19 * tonumber(args[7])
		for i = 1, CHUNK do
			local id = taken:sub(from + 1, from + 19)
			if id == '' then break end
			ids[i], from = id, from + 19
		end
		if from < #taken then more = 1 end
	end
else
	local m = M.named(args[5], args[6])
	if m then ids[1] = m.id end
end
local n = 0
for _, id in ipairs(ids) do
	local m = M.find(id)
	if m and m.mark == 'L' and m.nonce == nonce(seed, id) then
		M.leave(m)
		m.attempt, m.nonce, m.deadline = m.attempt - 1, '', 0
		M.wait(m)
		M.save(m)
		n = n + 1
	end
end
woken(before)
return {us, raw, n, more}
