-- Stores settings in the first shard of a queue. ARGV: the expected revision ('' for any),
-- and the settings without their revision. Answers the clock and 0 with the current revision
-- if that differs, 1 with the settings and their new revision, or 2 to call again.
local stands = settings() and limits.revision or 0
if args[4] ~= '' and args[4] ~= format('%.0f', stands) then return reply({us, raw, 0, format('%.0f', stands)}) end
-- First apply the old settings up to now: messages that they dropped must not come back.
if lapses() or messages().cull() then return reply({us, raw, 2, ''}) end
-- A revision is based on the time, so that it never repeats, even if some were lost.
local value = struct.pack('>d', math.max(us, stands + 1)) .. args[5]
call('HSET', META, 'settings', value)
know(value)
if limits.rate == 0 then call('HDEL', META, 'bucket') end
messages().cull()
wake(now)
return reply({us, raw, 1, value})
