-- Gives back what a call leased whose answer was lost: ARGV has the seed of that call's nonces, and the place in
-- the leases behind which to begin. Answers the clock, how many were given back, and
-- the place to go on behind, unless that was all.
tick()
local M, before = messages(), first()
local found = behind(LEASES, '-inf', '+inf', args[5], args[6], CHUNK)
local n = 0
for i = 1, #found, 2 do
	local m = M.find(found[i])
	if m and m.mark == 'L' and m.nonce == nonce(args[4], m.id) then
		M.leave(m)
		m.attempt, m.nonce, m.deadline = m.attempt - 1, '', 0
		M.wait(m)
		M.save(m)
		n = n + 1
	end
end
woken(before)
if #found < 2 * CHUNK then return {us, raw, n} end
return {us, raw, n, found[#found], found[#found - 1]}
