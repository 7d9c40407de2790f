-- Leases one message if it is due. ARGV: id, key, the lease's span ('' for the message's
-- own), its secret, "lease" or "forget" to delete the message at once, with the required state
-- after it if there is one (messages().state), and the worker. Answers the clock, then the
-- message, or the reason why it is not leased. not_due is followed by the due time ('' if the
-- shard is paused), stale by the state, and limit by the time when the rate permits a lease
-- ('' if too many are leased).
tick()
local M = messages()
local mode, state = args[8]:match('(%a+)(%d?)')
local m = M.named(args[4], args[5])
if not m then return {us, raw, 'not_found'} end
if state ~= '' and tonumber(state) ~= M.state(m) then return {us, raw, 'stale', M.state(m)} end
if m.mark == 'L' then return {us, raw, 'leased'} end
if state == '' then
	if m.mark == 'D' then return {us, raw, 'dead'} end
	if m.due > now then return {us, raw, 'not_due', m.due} end
elseif m.mark == 'D' and m.key ~= '' and M.named('', m.key) then
	return {us, raw, 'exists'}
end
local meta = call('HMGET', META, 'paused', 'settings')
know(meta[2])
if state == '' and paused(meta[1]) then return {us, raw, 'not_due', ''} end
if permits(1) < 1 then return {us, raw, 'limit', full() and '' or gathers()} end
local before
if state ~= '' and M.state(m) ~= 2 then
	before = first()
	M.leave(m)
	if m.mark == 'D' then
		if m.key ~= '' then M.hold(m) end
		m.expires, m.died = math.huge, 0
	end
	m.due = math.min(m.due, now)
	M.wait(m)
	M.save(m)
end
local answer = {us, raw, ''}
local _, _, lapse = take(answer, {m.id}, {m.due}, 1, args[6], args[7], mode == 'forget', 1)
given(1)
-- If this client dies, others must know when to ask. They have not seen the message ready.
if before and mode == 'lease' then
	soonest = lapse
	woken(before)
end
return answer
