-- Takes one message if it is due: ARGV has id, key, the span of the lease
-- ('' for its own), its secret, and "forget" to delete it at once; and see jot.
-- Answers the clock and what stands in the way, before its due a message's due too,
-- else the message.
tick()
local m = messages().named(args[4], args[5])
if not m then return {us, raw, 'not_found'} end
if m.mark == 'D' then return {us, raw, 'dead'} end
if m.mark == 'L' then return {us, raw, 'leased'} end
if m.due > now then return {us, raw, 'not_due', m.due} end
if paused(call('HGET', META, 'paused')) then return {us, raw, 'not_due', ''} end
local answer = {us, raw, ''}
take(answer, {m.id}, {m.due}, 1, args[6], args[7], args[8] == 'forget', 1)
jot(answer, 4, args[7])
return answer
