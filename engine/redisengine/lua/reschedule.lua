-- Moves the due time of a waiting message. ARGV: id, key, due, and the required state
-- (messages().state, 0 for any). Answers the clock, the soonest due if others were woken,
-- and '' with the message without content, or what prevents it with the state if that
-- differs.
local M, before = messages(), first()
local m = M.named(args[4], args[5])
if not m then return reply({us, raw, false, 'not_found'}) end
if m.mark == 'D' then return reply({us, raw, false, 'dead'}) end
if args[7] ~= '0' and tonumber(args[7]) ~= M.state(m) then return reply({us, raw, false, 'stale', M.state(m)}) end
if m.mark == 'L' then return reply({us, raw, false, 'leased'}) end
M.leave(m)
-- A redriven message never expires, whatever its policy.
local forever = m.expire > 0 and m.expires == math.huge
M.renew(m, resolve(args[6]), forever)
local s = M.stands(m, false)
return reply({us, raw, woken(before), '', s[1], s[2], s[3], s[4]})
