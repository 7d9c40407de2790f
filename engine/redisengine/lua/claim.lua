-- Takes one message if it is due: ARGV has id, key, the span of the lease
-- ('' for its own), its secret, and "forget" to delete it at once.
-- Answers the clock and what stands in the way, with the due of one that is not due, and
-- for a limit when the rate lets it pass ('' where too many are leased), else the message.
tick()
local m = messages().named(args[4], args[5])
if not m then return {us, raw, 'not_found'} end
if m.mark == 'D' then return {us, raw, 'dead'} end
if m.mark == 'L' then return {us, raw, 'leased'} end
if m.due > now then return {us, raw, 'not_due', m.due} end
local meta = call('HMGET', META, 'paused', 'settings')
know(meta[2])
if paused(meta[1]) then return {us, raw, 'not_due', ''} end
if permits(1) < 1 then return {us, raw, 'limit', full() and '' or gathers()} end
local answer = {us, raw, ''}
take(answer, {m.id}, {m.due}, 1, args[6], args[7], args[8] == 'forget', 1)
given(1)
return answer
