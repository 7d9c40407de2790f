-- Leases one message if it is due. ARGV: id, key, the lease's span ('' for the message's
-- own), its secret, "forget" to delete the message at once, and the worker. Answers the
-- clock, then the message, or the reason why it is not leased. not_due is followed by the due
-- time ('' if the shard is paused), and limit by the time when the rate permits a lease ('' if
-- too many are leased).
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
