-- Gives back what a call leased whose answer was lost, as it was before: KEYS[14] is where
-- it noted that, see jot. ARGV has the secret of that call's leases, and how many of its
-- messages have been looked at. Answers the clock, how many were given back, and whether
-- there are more to look at.
tick()
local M, before, was = messages(), first(), full()
local secret, from = args[4], tonumber(args[5])
local taken = call('GET', KEYS[14]) or ''
local total, at = 0, 0
if taken:sub(1, #secret) == secret then total, at = struct.unpack('>I4', taken, #secret + 1) end
local secrets = {}
for i = at + 8 * total, #taken, 40 do secrets[taken:sub(i, i + 7)] = taken:sub(i + 8, i + 39) end
local n = 0
for i = from, math.min(total, from + CHUNK) - 1 do
	local id = taken:sub(at + 8 * i, at + 8 * i + 7)
	local m = M.find(id)
	if m and m.mark == 'L' and m.secret == secret then
		M.leave(m)
		m.attempt, m.secret, m.deadline = m.attempt - 1, secrets[id] or '', 0
		M.wait(m)
		M.save(m)
		n = n + 1
	end
end
if not woken(before) and was then wake(now) end
return {us, raw, n, from + CHUNK < total and 1 or 0}
