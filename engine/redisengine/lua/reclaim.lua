-- Gives back what a call leased whose answer was lost, as it was before: KEYS[13] is where
-- it noted that, see jot. ARGV has the seed of that call's nonces, and how many of its
-- messages have been looked at. Answers the clock, how many were given back, and whether
-- there are more to look at.
tick()
local M, before = messages(), first()
local seed, from = args[4], 19 * tonumber(args[5])
local taken = call('GET', KEYS[13]) or ''
local ids, rest = '', ''
if taken:sub(1, #seed) == seed then ids, rest = taken:match('^(%d*)|?(%w*)', #seed + 1) end
local nonces = {}
for i = 1, #rest, 51 do nonces[rest:sub(i, i + 18)] = rest:sub(i + 19, i + 50) end
local n = 0
for i = from + 1, math.min(#ids, from + 19 * CHUNK), 19 do
	local id = ids:sub(i, i + 18)
	local m = M.find(id)
	if m and m.mark == 'L' and m.nonce == nonce(seed, id) then
		M.leave(m)
		m.attempt, m.nonce, m.deadline = m.attempt - 1, nonces[id] or '', 0
		M.wait(m)
		M.save(m)
		n = n + 1
	end
end
woken(before)
return {us, raw, n, from + 19 * CHUNK < #ids and 1 or 0}
