-- Returns a message by id or key: by key the live one, else the memory of the key, else the
-- newest dead one. Answers the clock and the message or the memory, if there is one.
tick()
local M = messages()
local m, memory = M.named(args[4], args[5])
if memory then return {us, raw, memory} end
if not m and args[4] == '' then
	local hash = redis.sha1hex(args[5])
	local newest = call('ZREVRANGEBYLEX', GRAVE, '[' .. hash .. '~', '[' .. hash, 'LIMIT', 0, 1)[1]
	-- The message that holds the key may have died by a lapse that no script has applied
	-- yet.
	local holder = M.holder(args[5])
	local spent = holder and M.present(holder)
	if spent and (not newest or before(newest, M.grave(spent))) then
		m = spent
	elseif newest then
		m = M.present(newest:sub(-8))
	end
end
if not m then return {us, raw} end
local s = M.stands(m, true)
return {us, raw, s[1], s[2], s[3], s[4]}
