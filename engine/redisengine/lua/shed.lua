-- Drops the part of a history that ended first, since memory is short. Answers the clock.
tick()
local ids = call('ZRANGE', ENDED, 0, CHUNK - 1)
if #ids > 0 then messages().unlist(ids) end
return {us, raw}
