-- Stores the settings of a queue in the shard that decides on them: ARGV has which revision
-- must stand ('' for any), and the settings but for their revision. Answers the clock and
-- 0 and the revision that stands where it is another, 1 and the settings with their new
-- revision, or 2 to call again because there was too much to do.
local stands = settings() and limits.revision or 0
if args[4] ~= '' and args[4] ~= format('%.0f', stands) then return tell({us, raw, 0, format('%.0f', stands)}) end
-- What is gone by the settings before does not come back, and who has died by now counts.
if lapses() or messages().cull() then return tell({us, raw, 2, ''}) end
-- It begins with the time: no revision comes again, even if some were lost.
local value = struct.pack('>d', math.max(us, stands + 1)) .. args[5]
call('HSET', META, 'settings', value)
know(value)
if limits.rate == 0 then call('HDEL', META, 'bucket') end
messages().cull()
wake(now)
return tell({us, raw, 1, value})
